# Completion of ClawDen's programs for bash. It asks the programs: what --help names is what is offered, and there is no
# list here that could grow old. Behind -- stands a command of its own.

# The verbs that a help text names: lines of two blanks, the words so far, and the verb.
_clawden_verbs() { # WORDS-SO-FAR < HELP
    sed -nE "s/^  ($1|docker) ([a-z][a-z-]*)( .*)?\$/\\2/p" | sort -u
}

_clawden() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} words i help
    local -a path=()

    COMPREPLY=()
    words=${program##*/}
    help=$("$program" --help 2>/dev/null </dev/null) || return 0
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            ((COMP_CWORD > i + 1)) || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            return 0
        fi
        if _clawden_verbs "$words" <<<"$help" | grep -qxF -e "${COMP_WORDS[i]}"; then
            path+=("${COMP_WORDS[i]}")
            words+=" ${COMP_WORDS[i]}"
            help=$("$program" "${path[@]}" --help 2>/dev/null </dev/null) || return 0
        fi
    done
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -e '--[a-z][a-z-]*' <<<"$help" | sort -u)" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_clawden_verbs "$words" <<<"$help")" -- "$cur")
    fi
}

complete -o default -F _clawden clawden clawden-sandbox clawden-gateway clawden-pull clawden-spawn clawden-egress
