#!/usr/bin/env bash
# `sudo` for the page's test: no user is made, each name is a number, and paths of the system lie in the test's folder.
arguments=()
for argument in "$@"; do arguments+=("${argument//\/var\/lib\/messaging/@WORLD@/var}"); done
set -- "${arguments[@]}"
id=0
if [ "$1" = "-u" ]; then
    case $2 in messagingd) id=64001 ;; engine) id=64002 ;; *) echo "sudo: unknown user $2" >&2; exit 1 ;; esac
    shift 2
fi
case $1 in
    useradd | groupadd | usermod) exit 0 ;;
    install) shift; mkdir -p "${@: -1}"; chown 64001:64100 "${@: -1}"; chmod 0710 "${@: -1}"; exit 0 ;;
esac
if [ "$id" = 0 ]; then exec "$@"; fi
exec setpriv --reuid "$id" --regid "$id" --groups 64100 -- env HOME=/nonexistent "$@"
