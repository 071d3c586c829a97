# bash-completion is a package of its own. Without it, these do what the script
# below needs of it: the words of the line with = and : inside words, and files.
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
_get_comp_words_by_ref()
{
    local line=${COMP_LINE:0:COMP_POINT} word gap i
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        gap=${line%%[![:space:]]*}
        line=${line#"$gap"}
        if ((i == COMP_CWORD)); then
            word=$line
        fi
        line=${line:${#word}}
        if ((i > 0)) && [[ -z $gap && ( $word == [:=]* || ${COMP_WORDS[i-1]} == *[:=] ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words[${#words[@]}]=$word
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
}
fi
if ! declare -F _filedir >/dev/null 2>&1; then
_filedir()
{
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        if [[ -z $1 || -d $file ]] || [[ $1 != -d && $file =~ \.($1)$ ]]; then
            COMPREPLY[${#COMPREPLY[@]}]=$file
        fi
    done < <(compgen -f -- "$cur")
}
fi

