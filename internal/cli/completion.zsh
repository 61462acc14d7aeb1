#compdef forgeyard
# Completion of forgeyard for zsh 5.0 and later. Load it behind compinit with
#     source <(forgeyard completion zsh)
# or write it to a file _forgeyard in a folder of $fpath. What is typed is handed over as it stands and never run.

_forgeyard() {
    setopt localoptions noksharrays noshwordsplit noglobsubst
    local cur=${(Q)PREFIX} program=${(Q)words[1]} line
    local -i directive=0 described=0
    local -a typed answers candidates shown
    typed=("${(@Q)words[2,CURRENT-1]}")
    ((CURRENT > 2)) || typed=()
    [[ $program == '~/'* ]] && program=$HOME/${program#'~/'}
    ((${+commands[$program]})) || [[ -x $program ]] || program=forgeyard # it was an alias

    answers=("${(@f)$("$program" __complete "${typed[@]}" "$cur" 2>/dev/null)}")
    for line in "${answers[@]}"; do
        case $line in
        :<->) directive=${line#:} ;;
        '' | _activeHelp_*) ;;
        *)
            candidates+=("${line%%$'\t'*}")
            [[ $line == *$'\t'?* ]] && described=1
            shown+=("${line/$'\t'/  -- }")
            ;;
        esac
    done

    [[ $cur == -*=* ]] && compset -P '*=' # the answers are values then
    ((directive & 1)) && return 1
    if ((directive & 16)); then
        _files -/
    elif ((${#candidates})); then
        local -a how
        how=(-V forgeyard)
        ((directive & 2)) && how+=(-S '')
        ((described)) && how+=(-l -d shown)
        compadd "${how[@]}" -a candidates
    elif ((!(directive & 4))); then
        _files
    else
        return 1
    fi
}

if [[ ${funcstack[1]} == _forgeyard ]]; then
    _forgeyard "$@" # the first time, where it was loaded from $fpath
elif ((${+functions[compdef]})); then
    compdef _forgeyard forgeyard
fi
