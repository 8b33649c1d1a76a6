# fish completion for hermes: hermes completion fish | source

function __hermes_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # Remove quotes and backslashes, also if a quote is open.
    set -l typed (string unescape -- "$current")
    set -l lines (_HERMES_COMPLETE=fish command hermes $words[2..-1] "$typed" 2>/dev/null)
    if test "$lines[1]" = files
        # What fish completes for an unknown command: files, also after an equals sign.
        complete -C "'' $current"
    else
        printf '%s\n' $lines[2..-1]
    end
end

complete -c hermes -f -a '(__hermes_complete)'
