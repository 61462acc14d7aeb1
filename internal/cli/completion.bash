# Completion of forgeyard for bash 3.2 and later; it needs no other package. Load it with
#     source <(forgeyard completion bash)
# or write it to /etc/bash_completion.d/forgeyard. What is typed is handed over as it stands and never run.

_forgeyard() {
    local words=() i piece glue="" cur own out line directive=0 candidates=() dirs
    COMPREPLY=()
    # Bash parts words at = and :, which belong to ours.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if [[ $piece == [=:]* && ${#words[@]} -gt 1 ]] || [[ -n $glue ]]; then
            words[${#words[@]} - 1]+=$piece
        else
            words+=("$piece")
        fi
        glue=""
        [[ $piece == *[=:] && $i -lt $COMP_CWORD && $i -gt 0 ]] && glue=yes
    done
    cur=${words[${#words[@]} - 1]}
    words[0]=${words[0]/#\~/$HOME}
    out=$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null) || return 0
    [[ $cur == -*=* ]] && cur=${cur#*=} # the answers are values then
    own=${cur%"${cur##*[=:]}"}          # what bash leaves standing

    while IFS= read -r line; do
        case $line in
        :[0-9]*) directive=${line#:} ;;
        "" | _activeHelp_*) ;;
        *)
            line=${line%%$'\t'*}
            [[ $line == "$cur"* ]] && candidates+=("$line")
            ;;
        esac
    done <<<"$out"

    ((directive & 1)) && return 0
    if ((directive & 16)); then # folders
        while IFS= read -r dirs; do COMPREPLY+=("$dirs"); done < <(compgen -d -- "$cur")
        compopt -o filenames 2>/dev/null
        return 0
    fi
    ((directive & 2)) && compopt -o nospace 2>/dev/null
    ((directive & 32)) && compopt -o nosort 2>/dev/null
    ((directive & 4)) || compopt -o default 2>/dev/null
    for line in ${candidates[@]+"${candidates[@]}"}; do
        COMPREPLY+=("$(printf %q "${line#"$own"}")")
    done
    return 0
}

complete -F _forgeyard forgeyard
