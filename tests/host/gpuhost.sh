#!/usr/bin/env bash
# A real GPU host without the GPUs: systemd, journald and OpenSSH in namespaces of this machine.
#
#   gpuhost.sh up NAME [PORT]      start it (idempotent); returns once an ssh login works
#   gpuhost.sh down NAME           kill it and remove every trace (idempotent)
#   gpuhost.sh ssh NAME [CMD...]   ssh into it as $GPUHOST_USER (ops)
#   gpuhost.sh exec NAME CMD...    run CMD as root inside, past ssh and the link
#   gpuhost.sh info NAME           KEY=VALUE lines: addr, port, key, ssh_config, pid1, cgroup ...
#   gpuhost.sh list
#   gpuhost.sh link NAME heal | cut | cut-in | cut-out | reset | lossy PCT
#                                  | wire [delay=MS] [jitter=MS] [loss=PCT] [rate=KBIT] [queue=PKTS]
#   gpuhost.sh freeze|thaw NAME    stop or continue every process of the host (TCP stays up)
#   gpuhost.sh crash NAME          SIGKILL its PID 1; disk and address stay, the host is off
#   gpuhost.sh stop NAME           orderly poweroff; the disk stays
#   gpuhost.sh boot NAME           boot a host that is off (same disk, new boot id)
#   gpuhost.sh reboot NAME         orderly reboot
#   gpuhost.sh kmsg NAME TEXT      a line of the kernel log (journalctl -k), such as an NVRM Xid
#   gpuhost.sh base SUITE [DIR]    make a root with mmdebstrap for GPUHOST_BASE
#   gpuhost.sh deps                name what this machine lacks, one a line; status 1 if anything
#   gpuhost.sh purge               down every host, drop the guard route and the state folder
#
# How: a supervisor with mount and network namespaces of its own owns the host's disk (a tmpfs) and
# its end of a veth pair, across boots. PID 1 is the real systemd in pid, mount, uts, ipc and cgroup
# namespaces; its root is an overlay over this machine's /usr and /etc (or over GPUHOST_BASE), with
# everything else fresh. The kernel is shared: /proc/sys is read-only inside.
#
# Environment:
#   GPUHOST_DIR      state folder, without blanks   (${TMPDIR:-/tmp}/gpuhost)
#   GPUHOST_BASE     / = overlay over this machine's /usr and /etc, or a folder made by `base`
#   GPUHOST_NET      own = network namespace + veth (default) | host = share, sshd on 127.0.0.1
#   GPUHOST_POLKIT   0 (default: hidden) | 1 (if the base has polkitd)
#   GPUHOST_USER     user for `ssh` (ops); others: root, dev (no journal group, no sudo)
#   GPUHOST_UPTIME   seconds added to the host's uptime (a time namespace), 0 = off
#   GPUHOST_SUDOERS  text for /etc/sudoers.d/ops
#   GPUHOST_SIZE     most that the host's disk may hold (2g)
#   GPUHOST_BIND     "SRC:DST ..." folders of this machine shown read-only inside
set -euo pipefail
SELF=$(readlink -f "${BASH_SOURCE[0]}")
HERE=${SELF%/*}
DIR=${GPUHOST_DIR:-${TMPDIR:-/tmp}/gpuhost}
NETBASE=${GPUHOST_NETBASE:-198.18.77}      # a /24 of the range for benchmarks (RFC 2544), as /30s
LOCK=/run/lock/gpuhost.lock                # hosts of all state folders share addresses and links
CAPDROP=-sys_time,-sys_module,-sys_rawio,-syslog,-audit_control,-audit_read,-mac_admin,-mac_override
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH LC_ALL=C

die() { echo "gpuhost: $*" >&2; exit 1; }
note() { [ -n "${GPUHOST_QUIET:-}" ] || echo "gpuhost: $*" >&2; }

# ---- small helpers -------------------------------------------------------------------------
paths() { # NAME
    [[ $1 =~ ^[a-z][a-z0-9-]{0,15}$ ]] || die "bad name '$1' (a-z, 0-9, -; 16 at most)"
    N=$1; S=$DIR/$N; M=$S/m; T=$M/root
}
start_of() { local s; s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; s=${s##*) }; set -- $s; echo "${20}"; }
alive() { # FILE holding "pid starttime"
    local p t state; { [ -e "$1" ] && read -r p t < "$1"; } 2>/dev/null || return 1
    [ "$(start_of "$p" || true)" = "$t" ] || return 1
    state=$(awk '/^State/{print $2}' "/proc/$p/status" 2>/dev/null) || return 1  # it has just ended
    [ -n "$state" ] && [ "$state" != Z ]
}
pid_in() { local p t; [ -e "$1" ] && read -r p t < "$1" && echo "$p" || true; }
record() { echo "$1 $(start_of "$1")" > "$2.tmp"; mv "$2.tmp" "$2"; }
get() { sed -n "s/^$1=//p" "$S/conf" 2>/dev/null; }
cg2() {
    awk '$3=="cgroup2"{print $2; f=1; exit} END{exit !f}' /proc/mounts && return
    mkdir -p "$DIR/.cgroup2" && mount -t cgroup2 gpuhost "$DIR/.cgroup2" && echo "$DIR/.cgroup2"
}
wait_for() { # SECONDS CMD… - poll every 20 ms
    local end=$(( ${EPOCHREALTIME/./} + $1 * 1000000 )); shift
    until "$@"; do [ "${EPOCHREALTIME/./}" -lt $end ] || return 1; sleep 0.02; done
}
need_up() { alive "$S/sup" || die "$N is not up"; }
pid1() { local p; alive "$S/pid1" && p=$(pid_in "$S/pid1") && [ -n "$p" ] && echo "$p"; }
nsin() { local p; p=$(pid_in "$S/sup"); nsenter -t "$p" -n -- "$@"; }   # its network namespace only

# PROGRAM:PACKAGE of everything that is run; a base of its own brings the host's part itself.
OURS=(ssh:openssh-client ssh-keygen:openssh-client nft:nftables ip:iproute2 python3:python3-minimal
    unshare:util-linux nsenter:util-linux setpriv:util-linux flock:util-linux)
THEIRS=(/usr/sbin/sshd:openssh-server /lib/systemd/systemd:systemd /usr/bin/systemctl:systemd
    /usr/bin/journalctl:systemd /usr/bin/dbus-daemon:dbus /usr/bin/sudo:sudo /usr/bin/ps:procps
    /usr/sbin/useradd:passwd)
deps() {
    local want=("${OURS[@]}") p rc=0
    [ "${GPUHOST_BASE:-/}" != / ] || want+=("${THEIRS[@]}")
    for p in "${want[@]}" "$@"; do
        command -v "${p%%:*}" >/dev/null || { echo "package ${p#*:} (${p%%:*})"; rc=1; }
    done
    [ "${GPUHOST_BASE:-/}" != / ] || compgen -G '/usr/lib/*/security/pam_systemd.so' >/dev/null ||
        compgen -G '/lib/*/security/pam_systemd.so' >/dev/null || { echo "package libpam-systemd"; rc=1; }
    [ -e /etc/ssh/sshd_config ] || [ "${GPUHOST_BASE:-/}" != / ] || { echo "file /etc/ssh/sshd_config"; rc=1; }
    [ "$(id -u)" = 0 ] || { echo "root"; return 1; }
    local probe; mkdir -p "$DIR"; probe=$(cg2) && [ -w "$probe/cgroup.procs" ] || { echo "a writable cgroup2 hierarchy"; rc=1; }
    unshare --pid --mount --uts --ipc --cgroup --net --fork true 2>/dev/null || { echo "the right to make namespaces"; rc=1; }
    return $rc
}

# ---- the host's disk (runs once per host, in the supervisor's mount namespace) --------------
prepare_root() {
    local base; base=$(get base)
    mkdir -p "$M"; mount -t tmpfs -o "mode=755,size=$(get size)" gpuhost "$M"
    mkdir -p "$T" "$M"/{u1,w1,u2,w2}
    if [ "$base" = / ]; then
        mount --bind "$T" "$T"
        local d; for d in bin sbin lib lib32 lib64 libx32; do [ ! -L /$d ] || cp -a /$d "$T/$d"; done
        mkdir -p "$T"/{usr,etc,var,proc,sys,dev,run,tmp,root,home,srv,mnt,opt,media}
        mount -t overlay -o "lowerdir=/usr,upperdir=$M/u1,workdir=$M/w1" gpuhost-usr "$T/usr"
        mount -t overlay -o "lowerdir=/etc,upperdir=$M/u2,workdir=$M/w2" gpuhost-etc "$T/etc"
        mkdir -p "$T"/var/{log,lib,cache,spool,tmp,mail,local}; ln -s /run "$T/var/run"; ln -s /run/lock "$T/var/lock"
        chmod 1777 "$T/var/tmp"
        # this machine's own units, init scripts and generators are none of the test host's
        rm -rf "$T"/etc/systemd/system/* "$T"/etc/systemd/user/* "$T"/etc/init.d/* "$T"/etc/rc?.d/* "$T"/etc/cron.*/* "$T"/etc/ssh/ssh_host_*
        mkdir -p "$T/etc/systemd/system-generators"
        for d in "$T"/usr/lib/systemd/system-generators/*; do ln -sf /dev/null "$T/etc/systemd/system-generators/${d##*/}"; done
        : > "$T/etc/environment"
    else
        mount -t overlay -o "lowerdir=$base,upperdir=$M/u1,workdir=$M/w1" gpuhost-root "$T"
        rm -f "$T"/etc/ssh/ssh_host_*
    fi
    chmod 1777 "$T/tmp"
    chmod 711 "$T/root"        # folders bound below it must be reachable for every user
    mkdir -p "$T/etc/default"; [ -e "$T/etc/default/locale" ] || : > "$T/etc/default/locale"
    mkfifo -m 600 "$M/kmsg"
    mkdir -p "$T/var/log/journal" "$T/etc/systemd/system/multi-user.target.wants"
    : > "$T/etc/fstab"; : > "$T/etc/resolv.conf" 2>/dev/null || true; rm -f "$T/etc/nologin"
    echo "$N" > "$T/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost\n' "$N" > "$T/etc/hosts"
    rm -f "$T/etc/machine-id"; tr -d - < /proc/sys/kernel/random/uuid > "$T/etc/machine-id"; touch "$T/etc/.updated" "$T/var/.updated"
    local u
    for u in console-getty.service getty.target systemd-sysctl.service systemd-modules-load.service systemd-udevd.service \
        systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service systemd-binfmt.service \
        proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
        sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount systemd-timesyncd.service \
        systemd-networkd.service systemd-networkd.socket systemd-resolved.service systemd-firstboot.service systemd-remount-fs.service \
        systemd-random-seed.service systemd-pstore.service ldconfig.service systemd-hwdb-update.service \
        systemd-journal-catalog-update.service systemd-update-done.service e2scrub_reap.service e2scrub_all.timer \
        apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer man-db.timer ssh.socket \
        systemd-journald-audit.socket sshd-keygen.service; do
        ln -sf /dev/null "$T/etc/systemd/system/$u"
    done
    [ "$(get polkit)" = 1 ] ||      # really absent: masking it gives systemctl an error no real host shows
        rm -f "$T/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service" "$T"/usr/lib/systemd/system/polkit.service "$T/usr/bin/pkttyagent"
    ln -sf /usr/lib/systemd/system/ssh.service "$T/etc/systemd/system/multi-user.target.wants/ssh.service"
    # users, keys, sshd, sudo
    local uid=1501 user
    for user in ops dev; do
        chroot "$T" useradd -M -u $uid -U -s /bin/bash "$user"; uid=$((uid + 1))
        mkdir -p "$T/home/$user"; chown $((uid - 1)):$((uid - 1)) "$T/home/$user"
    done
    chroot "$T" usermod -aG systemd-journal ops
    for user in root home/ops home/dev; do
        mkdir -p -m 700 "$T/$user/.ssh"; cp "$S/id_ed25519.pub" "$T/$user/.ssh/authorized_keys"
        chown -R --reference="$T/$user" "$T/$user/.ssh"
    done
    cp "$S/host_ed25519" "$T/etc/ssh/ssh_host_ed25519_key"; chmod 600 "$T/etc/ssh/ssh_host_ed25519_key"
    cp "$S/host_ed25519.pub" "$T/etc/ssh/ssh_host_ed25519_key.pub"
    mkdir -p "$T/etc/ssh/sshd_config.d"
    cat > "$T/etc/ssh/sshd_config.d/00-gpuhost.conf" <<-EOF
	Port $(get port)
	ListenAddress $( [ "$(get net)" = host ] && echo 127.0.0.1 || echo 0.0.0.0 )
	HostKey /etc/ssh/ssh_host_ed25519_key
	PermitRootLogin prohibit-password
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	UseDNS no
	PrintMotd no
	EOF
    [ ! -d "$T/etc/sudoers.d" ] || { printf '%s\n' "$(get_sudoers)" > "$T/etc/sudoers.d/ops"; chmod 440 "$T/etc/sudoers.d/ops"; }
}
get_sudoers() { cat "$S/sudoers"; }

# ---- one boot: becomes PID 1 of a new pid+mount+uts+ipc+cgroup namespace ---------------------
inner() {
    paths "$1"
    hostname "$N"
    mount -t tmpfs -o mode=755,nosuid,nodev,size=512m tmpfs "$T/run"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$T/tmp"
    mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$T/dev"
    local n
    while read -r n maj min; do mknod -m 666 "$T/dev/$n" c "$maj" "$min"; done <<-EOF
	null 1 3
	zero 1 5
	full 1 7
	random 1 8
	urandom 1 9
	tty 5 0
	console 1 3
	EOF
    # journald reads it as the kernel log; the supervisor holds it open, or its first writer would block
    touch "$T/dev/kmsg"; mount --bind "$M/kmsg" "$T/dev/kmsg"
    mkdir "$T/dev/pts" "$T/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5,nosuid,noexec devpts "$T/dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$T/dev/shm"
    ln -s pts/ptmx "$T/dev/ptmx"; ln -s /proc/self/fd "$T/dev/fd"
    ln -s fd/0 "$T/dev/stdin"; ln -s fd/1 "$T/dev/stdout"; ln -s fd/2 "$T/dev/stderr"
    mount -t proc -o nosuid,nodev,noexec proc "$T/proc"
    # the kernel is shared: no writes to its global knobs (systemd and sysctl.d would make some)
    mount --bind "$T/proc/sys" "$T/proc/sys"
    if [ "$(get net)" = own ]; then mount --bind "$T/proc/sys/net" "$T/proc/sys/net"; fi
    cat /proc/sys/kernel/random/uuid > "$T/run/.boot_id"; chmod 444 "$T/run/.boot_id"
    mount --bind "$T/run/.boot_id" "$T/proc/sys/kernel/random/boot_id"
    mount -o remount,bind,ro "$T/proc/sys"
    if [ -e "$T/proc/sysrq-trigger" ]; then
        mount --bind "$T/proc/sysrq-trigger" "$T/proc/sysrq-trigger"; mount -o remount,bind,ro "$T/proc/sysrq-trigger"
    fi
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$T/sys"
    mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$T/sys/fs/cgroup"
    local b; for b in $(get bind); do
        mkdir -p "$T/${b#*:}"; mount --bind "${b%%:*}" "$T/${b#*:}"; mount -o remount,bind,ro "$T/${b#*:}"
    done
    cd "$T"; mkdir -p run/.old; pivot_root . run/.old; cd /
    umount -l /run/.old; rmdir /run/.old
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=gpuhost \
        setpriv --bounding-set "$CAPDROP" /lib/systemd/systemd --show-status=0 --log-target=journal systemd.unit=multi-user.target
}

# ---- the supervisor: owns the host's network namespace and disk across boots ------------------
sup() {
    paths "$1"
    trap : HUP INT TERM
    exec 8<>"$S/ctl"
    ip link set lo up 2>/dev/null || true
    prepare_root
    exec 7<>"$M/kmsg"
    local cg; cg=$(get cgroup); local ups; ups=$(get uptime); local rc time=()
    [ "${ups:-0}" = 0 ] || time=(--time --monotonic "$ups" --boottime "$ups")
    while :; do
        ( echo "$BASHPID" > "$cg/cgroup.procs"
          exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child "${time[@]}" \
              bash "$SELF" __inner "$N" 7>&- 8>&- ) &
        local u=$!
        local c=; while [ -z "$c" ] && kill -0 $u 2>/dev/null; do read -r c _ < "/proc/$u/task/$u/children" 2>/dev/null || true; [ -n "$c" ] || sleep 0.005; done
        [ -z "$c" ] || record "$c" "$S/pid1"
        rc=0; wait $u || rc=$?
        while kill -0 $u 2>/dev/null; do rc=0; wait $u || rc=$?; done
        # an orderly reboot that was asked for is one however its end is reported: under load the
        # kernel's SIGKILL of PID 1 was seen to be, instead of the SIGHUP that stands for a restart
        [ ! -e "$S/rebooting" ] || { rm -f "$S/rebooting"; rc=129; }
        rm -f "$S/pid1"
        find "$cg" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
        echo "$(date +%s.%N) exit=$rc" >> "$S/boots"
        case $rc in
            129) continue ;;                              # reboot(RESTART) ends a pid namespace by SIGHUP
        esac
        local cmd=; while [ "$cmd" != boot ]; do read -r cmd <&8 || sleep 0.1; done
    done
}

# ---- verbs -----------------------------------------------------------------------------------
try_ssh() { ssh -F "$S/ssh_config" -o ConnectTimeout=2 -o LogLevel=QUIET -n "$N" true >/dev/null 2>&1; }
banner() { local b=; b=$( (exec 3<>"/dev/tcp/$(get addr)/$(get port)" && read -r -t 1 b <&3 && echo "$b") 2>/dev/null) || return 1; [[ $b == SSH-* ]]; }
boots() { if [ -e "$S/boots" ]; then wc -l < "$S/boots"; else echo 0; fi; }
ready() { # SECONDS
    local end=$(( ${EPOCHREALTIME/./} + $1 * 1000000 )) n; n=$(boots)
    until banner && try_ssh; do
        [ "${EPOCHREALTIME/./}" -lt $end ] || { tail -20 "$S/log" >&2; die "$N is not reachable after $1 s (log: $S/log)"; }
        alive "$S/sup" && [ "$(boots)" = "$n" ] || { tail -20 "$S/log" >&2; die "$N went off while booting (log: $S/log)"; }
        sleep 0.02
    done
}

up() {
    paths "$1"; local port=${2:-}
    [ "$(id -u)" = 0 ] || die "must be root"
    mkdir -p "$DIR"; chmod 700 "$DIR"
    exec 9>"$LOCK"; flock 9
    if alive "$S/sup" && { [ -z "$port" ] || [ "$port" = "$(get port)" ]; }; then
        if pid1 >/dev/null; then note "$N is up already"; else echo boot > "$S/ctl"; wait_for 10 eval 'pid1 >/dev/null' || true; fi
        flock -u 9; ready 90; info "$N"; return
    fi
    [ ! -e "$S" ] || teardown
    local missing; missing=$(deps) || die "this machine lacks: ${missing//$'\n'/, }"
    local base=${GPUHOST_BASE:-/} net=${GPUHOST_NET:-own} i c used
    [ "$base" = / ] || [ -x "$base/lib/systemd/systemd" ] || die "no systemd in $base"
    c=$(cg2); [ -n "$c" ] || die "no cgroup2 mount on this machine"
    mkdir -p -m 700 "$S"
    used=" $(sed -n 's/^idx=//p' "$DIR"/*/conf 2>/dev/null | tr '\n' ' ' || true) "
    for ((i = 0; i < 64; i++)); do
        [[ $used == *" $i "* ]] || [ -e "/sys/class/net/ghv$i" ] || [ -d "$c/gpuhost-$i-$N" ] || break
    done
    [ $i -lt 64 ] || die "too many hosts"
    local gw=$NETBASE.$((4 * i + 1)) addr=$NETBASE.$((4 * i + 2))
    if [ "$net" = host ]; then addr=127.0.0.1 gw=; port=${port:-2222}; else port=${port:-22}; fi
    cat > "$S/conf" <<-EOF
	name=$N
	idx=$i
	addr=$addr
	gw=$gw
	port=$port
	net=$net
	base=$base
	polkit=${GPUHOST_POLKIT:-0}
	uptime=${GPUHOST_UPTIME:-0}
	size=${GPUHOST_SIZE:-2g}
	bind=${GPUHOST_BIND:-}
	veth=ghv$i
	cgroup=$c/gpuhost-$i-$N
	EOF
    local sc='/usr/bin/systemctl'
    printf '%s\n' "${GPUHOST_SUDOERS:-ops ALL=(root) NOPASSWD: $sc ^(start|stop|restart|reset-failed|kill) llm[a-z0-9@_-]*[.]service\$, $sc daemon-reload, /usr/bin/tee ^/etc/systemd/system/llm[a-z0-9@_-]*[.]service[.]d/[a-z0-9-]+[.]conf\$}" > "$S/sudoers"
    ssh-keygen -q -t ed25519 -N '' -C "gpuhost" -f "$S/id_ed25519"
    ssh-keygen -q -t ed25519 -N '' -C "root@$N" -f "$S/host_ed25519"
    local kh=$addr; [ "$port" = 22 ] || kh="[$addr]:$port"
    echo "$kh $(cut -d' ' -f1,2 "$S/host_ed25519.pub")" > "$S/known_hosts"
    cat > "$S/ssh_config" <<-EOF
	Host $N
	  HostName $addr
	  Port $port
	  User ${GPUHOST_USER:-ops}
	  IdentityFile $S/id_ed25519
	  IdentitiesOnly yes
	  UserKnownHostsFile $S/known_hosts
	  GlobalKnownHostsFile /dev/null
	  StrictHostKeyChecking yes
	  PreferredAuthentications publickey
	  BatchMode yes
	  ConnectTimeout 5
	EOF
    local cg; cg=$(get cgroup); mkdir -p "$cg"
    mkfifo -m 600 "$S/ctl"
    local ns=(--mount --propagation private); [ "$net" = host ] || ns+=(--net)
    # no inherited descriptor may survive in the background, or a CI pipe never closes
    ( cd /; exec setsid unshare "${ns[@]}" bash "$SELF" __sup "$N" </dev/null >"$S/log" 2>&1 9>&- 3>&- 4>&- 5>&- 6>&- 7>&- ) &
    local sp=$!; disown $sp; record $sp "$S/sup"
    if [ "$net" = own ]; then
        local before; before=$(readlink /proc/self/ns/net)
        wait_for 5 eval '[ "$(readlink /proc/'$sp'/ns/net)" != "$before" ]' || die "no network namespace"
        # without this a client that retries after `down` would talk to the default gateway
        ip route replace unreachable "$NETBASE.0/24" metric 20000
        ip link add "ghv$i" type veth peer name eth0 netns $sp
        ip link set "ghv$i" addrgenmode none
        ip addr add "$gw/30" dev "ghv$i"; ip link set "ghv$i" up
        nsin ip addr add "$addr/30" dev eth0; nsin ip link set eth0 up
    fi
    flock -u 9
    ready 90
    info "$N"
}

teardown() { # paths are set; the host may be half there
    local cg p; cg=$(get cgroup)
    # PID 1 first: the kernel then kills the whole pid namespace, and its own parents reap it
    if p=$(pid1) && [ -n "$p" ]; then kill -9 "$p" 2>/dev/null || true; wait_for 5 eval '[ ! -e "$S/pid1" ]' || true; fi
    for p in "$S/sup" "$S/wire.pid"; do
        if alive "$p"; then kill -9 "$(pid_in "$p")" 2>/dev/null || true; fi
    done
    if [ -n "$cg" ] && [ -d "$cg" ]; then
        { echo 1 > "$cg/cgroup.kill"; } 2>/dev/null || true
        wait_for 10 eval 'grep -q "^populated 0" "$cg/cgroup.events"' || note "processes left in $cg"
        wait_for 5 eval 'find "$cg" -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -d "$cg" ]' || note "cgroup left: $cg"
    fi
    if [ -e "$S/sup" ]; then wait_for 5 eval '! alive "$S/sup"' || note "supervisor left"; fi
    if [ "$(get net)" = own ]; then
        ip link del "$(get veth)" 2>/dev/null || true
        ip link del "ghw$(get idx)" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$S"
}
down() {
    paths "$1"; [ -d "$S" ] || { note "$N is not up"; return 0; }
    exec 9>"$LOCK"; flock 9; teardown; flock -u 9
}
info() {
    paths "$1"; [ -e "$S/conf" ] || die "$N is not up"
    cat "$S/conf"
    echo "state=$( [ -n "$(pid1 || true)" ] && echo on || { alive "$S/sup" && echo off || echo dead; } )"
    echo "pid1=$(pid1 || true)"; echo "supervisor=$(pid_in "$S/sup")"
    echo "key=$S/id_ed25519"; echo "known_hosts=$S/known_hosts"; echo "ssh_config=$S/ssh_config"
}
c_ssh() { paths "$1"; shift; [ -e "$S/conf" ] || die "$N is not up"; exec ssh -F "$S/ssh_config" ${GPUHOST_USER:+-l "$GPUHOST_USER"} "$N" "$@"; }
c_exec() {
    paths "$1"; shift; local p; p=$(pid1) || die "$N is off"
    # runs in the host's namespaces, though in the caller's cgroup: `freeze` does not stop it
    exec nsenter -t "$p" -m -p -u -i -n -C -r -w -- env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}" "$@"
}
link() {
    paths "$1"; need_up; [ "$(get net)" = own ] || die "link faults need GPUHOST_NET=own"
    local what=${2:-heal} port gw addr; port=$(get port) gw=$(get gw) addr=$(get addr); shift 2 || true
    case $what in
        heal)
            nsin nft 'add table inet gpuhost; delete table inet gpuhost'
            if [ -e "$S/wire.pid" ]; then
                ip route del "$addr" 2>/dev/null || true; nsin ip route del "$gw" 2>/dev/null || true
                if alive "$S/wire.pid"; then kill -TERM "$(pid_in "$S/wire.pid")"; wait_for 3 eval '! alive "$S/wire.pid"' || true; fi
                rm -f "$S/wire.pid"
            fi ;;
        cut|cut-in|cut-out|reset|lossy)
            local pct=${1:-10}
            { echo 'add table inet gpuhost; delete table inet gpuhost; add table inet gpuhost'
              [ $what = cut-out ] || echo 'add chain inet gpuhost in { type filter hook input priority 0; }'
              [ $what = cut-in ] || echo 'add chain inet gpuhost out { type filter hook output priority 0; }'
              case $what in
                  cut) echo 'add rule inet gpuhost in iif != "lo" drop; add rule inet gpuhost out oif != "lo" drop' ;;
                  cut-in) echo 'add rule inet gpuhost in iif != "lo" drop' ;;
                  cut-out) echo 'add rule inet gpuhost out oif != "lo" drop' ;;
                  reset) echo "add rule inet gpuhost in iif != \"lo\" tcp dport $port reject with tcp reset" ;;
                  lossy) echo "add rule inet gpuhost in iif != \"lo\" numgen random mod 100 < $pct drop
                               add rule inet gpuhost out oif != \"lo\" numgen random mod 100 < $pct drop" ;;
              esac; } | nsin nft -f - ;;
        wire)
            printf '%s\n' "$@" > "$S/wire.conf"
            if alive "$S/wire.pid"; then kill -HUP "$(pid_in "$S/wire.pid")"; return; fi
            local i; i=$(get idx); rm -f "$S/wire.ready"
            ( cd /; exec setsid /usr/bin/python3 "$HERE/delay_line.py" "$(pid_in "$S/sup")" "ghw$i" "$S" </dev/null >"$S/wire.log" 2>&1 9>&- ) &
            local wp=$!; disown $wp; record $wp "$S/wire.pid"
            wait_for 5 test -e "$S/wire.ready" || { cat "$S/wire.log" >&2; die "wire did not start"; }
            # the addresses stay on the veth; only the routes move, so open connections live on
            ip link set "ghw$i" up mtu 1500; nsin ip link set wire0 up mtu 1500
            ip route replace "$addr/32" dev "ghw$i" src "$gw"; nsin ip route replace "$gw/32" dev wire0 src "$addr" ;;
        *) die "link: heal|cut|cut-in|cut-out|reset|lossy PCT|wire k=v…" ;;
    esac
}
freeze() { paths "$1"; need_up; echo "$2" > "$(get cgroup)/cgroup.freeze"; }
crash() {
    paths "$1"; need_up; local p; p=$(pid1) || die "$N is off"
    kill -9 "$p"; wait_for 10 eval '[ ! -e "$S/pid1" ]' || die "still on"
}
stop() { paths "$1"; need_up; local p; p=$(pid1) || return 0; kill -s RTMIN+4 "$p"; wait_for 100 eval '[ ! -e "$S/pid1" ]' || die "still on"; }
boot() { paths "$1"; need_up; if pid1 >/dev/null; then return 0; fi; echo boot > "$S/ctl"; wait_for 10 eval 'pid1 >/dev/null' || die "did not boot"; ready 90; }
reboot() { paths "$1"; need_up; local p q; p=$(pid1) || die "$N is off"; : > "$S/rebooting"; kill -s RTMIN+5 "$p"
    wait_for 100 eval 'q=$(pid1) && [ "$q" != "$p" ]' || die "did not come back"; ready 90; }
list() {
    local d; for d in "$DIR"/*/conf; do [ -e "$d" ] || continue; paths "$(basename "$(dirname "$d")")"
        echo "$N $(get addr):$(get port) $( [ -n "$(pid1 || true)" ] && echo on || { alive "$S/sup" && echo off || echo dead; } )"; done
}
base() {
    local suite=$1 dir=${2:-$DIR/base-$1}; mkdir -p "$DIR"
    [ ! -e "$dir/etc/debian_version" ] || { echo "$dir"; return; }
    GPUHOST_BASE=/none deps mmdebstrap:mmdebstrap >&2 || die "not enough on this machine"
    mmdebstrap --quiet --variant=apt --include=systemd,systemd-sysv,dbus,libpam-systemd,openssh-server,sudo,python3-minimal,iproute2,procps \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$suite" "$dir.tmp" "$(apt_mirror)" </dev/null >&2
    mv "$dir.tmp" "$dir"; echo "$dir"
}
apt_mirror() { sed -n 's/^URIs: *\([^ ]*debian\)\/*$/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1 | grep . || die "no Debian mirror found in the machine's own sources"; }
purge() {
    local d; for d in "$DIR"/*/conf; do [ -e "$d" ] || continue; down "$(basename "$(dirname "$d")")"; done
    compgen -G '/sys/class/net/ghv*' >/dev/null ||
        ip route del unreachable "$NETBASE.0/24" metric 20000 2>/dev/null || true
    ! mountpoint -q "$DIR/.cgroup2" || umount "$DIR/.cgroup2"
    rm -rf --one-file-system "$DIR"
}

verb=${1:-}; shift || true
case $verb in
    up) [ $# -ge 1 ] || die "up NAME [port]"; up "$@" ;;
    down) [ $# = 1 ] || die "down NAME"; down "$@" ;;
    ssh) c_ssh "$@" ;;
    exec) c_exec "$@" ;;
    info|link|crash|stop|boot|reboot|base) $verb "$@" ;;
    freeze) freeze "$1" 1 ;;
    thaw) freeze "$1" 0 ;;
    list|purge) $verb ;;
    kmsg) paths "$1"; need_up; printf '4,0,%d,-;%s\n' $(( ${EPOCHREALTIME/./} % 1000000000000 )) "${*:2}" > "/proc/$(pid_in "$S/sup")/root$M/kmsg" ;;
    deps) deps ;;
    __sup) sup "$1" ;;
    __inner) inner "$1" ;;
    *) sed -n '2,43s/^# \{0,1\}//p' "$SELF" >&2; exit 2 ;;
esac
