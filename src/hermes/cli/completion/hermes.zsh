#compdef hermes
# zsh completion for hermes, after compinit: eval "$(hermes completion zsh)"

_hermes() {
    local -a lines values shown
    local line
    # Close an open quote: only then does zsh interpret the quotes and backslashes after it.
    local typed=${(Q)${:-$QIPREFIX$PREFIX$compstate[quote]}}
    lines=("${(@f)$(_HERMES_COMPLETE=zsh command hermes "${(@Q)words[2,CURRENT-1]}" "$typed" 2>/dev/null)}")
    if [[ $lines[1] == files ]]; then
        compset -P '--*='
        _files
        return
    fi
    for line in "${(@)lines[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    compset -P '--*='
    compadd -l -d shown -a values
}

if [[ $funcstack[1] == _hermes ]]; then
    _hermes "$@"
else
    compdef _hermes hermes
fi
