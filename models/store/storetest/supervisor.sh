# Runs a PostgreSQL server as long as standard input is open.
# Arguments: the directory of PostgreSQL's programs, and an empty directory.
bin=$1 dir=$2
trap 'rm -rf "$dir"' EXIT

# The data need not survive a power failure, so nothing is synced to disk.
options="-c listen_addresses= -c unix_socket_directories=$dir -c max_connections=200"
options="$options -c shared_buffers=64MB -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
options="$options -c max_wal_size=128MB -c min_wal_size=32MB -c jit=off"

if ! {
	"$bin/initdb" --pgdata "$dir/data" --username postgres --encoding UTF8 --locale C.UTF-8 \
		--auth-local trust --auth-host reject --no-sync &&
	"$bin/pg_ctl" --pgdata "$dir/data" --log "$dir/server.log" --options "$options" --wait --timeout 60 start
} >"$dir/start.log" 2>&1; then
	cat "$dir"/*.log
	exit 1
fi

echo ready
cat >/dev/null
"$bin/pg_ctl" --pgdata "$dir/data" --mode immediate --wait stop >/dev/null 2>&1
