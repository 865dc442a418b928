# Kills the children of a process that has ended. See guard.rs, which starts this.
#
# stdin    a pipe that only the guarded process holds open; nothing is ever written to it
# stdout   the table of its children, one per line: process id, start time (0 if it is unknown)
# $1, $2   the process and its start time, if all other processes of its session are killed, too; else empty
#
# Only builtins are used, so that this also works if no more processes can be started.

trap '' HUP INT QUIT TERM ALRM USR1 USR2 PIPE
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
cd /
while read -r _; do :; done

leader=${1-} leader_born=${2-}

# Sets `group` and `session` to those of a process and `born` to its start time. All are empty if there is no such
# process.
look() {
    group= session= born= text=
    while read -r line; do text="$text $line"; done <"/proc/$1/stat"
    # The name of the program is in parentheses and may contain anything.
    set -- ${text##*)}
    group=${3-} session=${4-} born=${20-}
}

# A process that has another start time got the id of the guarded process, and its session is of no concern.
if [ -n "$leader" ]; then
    look "$leader"
    [ -z "$born" ] || [ "$born" = "$leader_born" ] || leader=
fi

groups= found=
while read -r pid start <&1; do
    case $pid in '' | *[!0-9]*) continue ;; esac
    look "$pid"
    if [ -z "$born" ]; then
        groups="$groups $pid"
    elif [ "$start" = 0 ] || [ "$start" = "$born" ]; then
        groups="$groups $pid" found="$found $pid"
    fi
done

# Find children that made their own group, as `timeout` does. They can be found only while their parents live. A parent
# may be any member of a group, because the leader may have ended. Reading one process takes about 0.2 ms. So on a
# machine with very many processes, only the first 2000 are read, and only the children of leaders are sure to be found.
if [ -n "$groups$leader" ]; then
    looks=0
    for list in /proc/[0-9]*/stat; do
        looks=$((looks + 1))
        [ "$looks" -le 2000 ] || break
        pid=${list#/proc/} pid=${pid%/stat}
        look "$pid"
        case "$groups " in *" ${group:-none} "*) found="$found $pid" ;; esac
        [ "$pid" != "$leader" ] && [ "$pid" != "$$" ] || continue
        # The system does not reuse the id of a session that has members.
        case "$session" in "${leader:-none}") found="$found $pid" ;; esac
    done
fi
level=$found depth=0
while [ -n "$level" ] && [ "$depth" -lt 64 ]; do
    next=
    for pid in $level; do
        for list in "/proc/$pid/task/"*/children; do
            kids=
            read -r kids <"$list"
            next="$next${kids:+ $kids}"
        done
    done
    found="$found$next" level=$next depth=$((depth + 1))
done

# The form with `-s` and `--` is the only one that all shells understand in the same way.
for pid in $groups; do kill -s KILL -- "-$pid"; done
for pid in $found; do kill -s KILL -- "$pid" "-$pid"; done
