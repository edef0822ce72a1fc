#!/bin/sh
# Compiles every header of src/ by itself: headers.sh src cc [words of cc]
set -u
src=$1
shift
bad=0
n=0
for h in $(find "$src" -name '*.h' | LC_ALL=C sort); do
    n=$((n + 1))
    # As a file that includes it: -x c on the header itself would warn about "#pragma once in main file".
    printf '#include "%s"\n' "${h#"$src"/}" |
        "$@" -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -include "$src/base/banned.h" -I"$src" -fsyntax-only -x c - ||
        { echo "header does not stand alone: ${h#"$src"/}"; bad=1; }
done
[ "$n" -gt 0 ] || { echo "no headers in $src"; exit 1; }
echo "$n headers"
exit $bad
