# bash completion for hermes: eval "$(hermes completion bash)"

_hermes_complete() {
    local kind line
    COMPREPLY=()
    {
        IFS= read -r kind
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done
    } < <(_HERMES_COMPLETE=bash command hermes "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
    if [[ $kind == files ]]; then
        compopt -o default 2>/dev/null
    fi
}

complete -F _hermes_complete hermes
