# Completion of forgeyard for fish 3.1 and later. Load it with
#     forgeyard completion fish | source
# or write it to ~/.config/fish/completions/forgeyard.fish. What is typed is handed over as it stands and never run.

function __forgeyard_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct | string collect)
    while set -q words[1]; and string match -qr '^\w+=' -- $words[1]
        set -e words[1] # variables in front of the command
    end
    set -q words[1]; or return
    set -l program (string replace -r '^~(?=/)' "$HOME" -- $words[1])
    type -q $program; or set program forgeyard # it was an alias
    set -l flag
    set -l value $cur
    if set -l parts (string match -r '^(-[^=]*=)(.*)$' -- $cur)
        set flag $parts[2] # the answers are values then, and fish wants whole words
        set value $parts[3]
    end

    set -l directive 0
    set -l candidates
    for line in ($program __complete $words[2..-1] $cur 2>/dev/null)
        if string match -qr '^:[0-9]+$' -- $line
            set directive (string sub -s 2 -- $line)
        else if test -n "$line"; and not string match -q '_activeHelp_*' -- $line
            set -a candidates $line
        end
    end

    test (math "$directive % 2") -eq 1; and return
    if test (math "floor($directive / 16) % 2") -eq 1
        set candidates (__fish_complete_directories "$value" '')
    else if not set -q candidates[1]; and test (math "floor($directive / 4) % 2") -eq 0
        set candidates (__fish_complete_path "$value")
    end
    for line in $candidates
        printf '%s\n' "$flag$line"
    end
end

complete -c forgeyard -e
complete -c forgeyard -k -f -a '(__forgeyard_complete)'
