# Completion of `hermes` in fish: hermes completion fish | source

function __hermes_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # Without its opening quote, and without the backslashes.
    set -l typed (string replace -r '^["\']' '' -- $current | string unescape)
    set -l lines (_HERMES_COMPLETE=fish command hermes $words[2..-1] "$typed" 2>/dev/null)
    if test "$lines[1]" = files
        __fish_complete_path $current
    else
        printf '%s\n' $lines[2..-1]
    end
end

complete -c hermes -f -a '(__hermes_complete)'
