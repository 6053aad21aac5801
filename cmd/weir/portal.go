package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models/store"
	"weir/policies"
	"weir/policies/notifications"
	"weir/pool"
	"weir/pool/authority"
	"weir/pool/broker"
	"weir/pool/providers"
	"weir/pool/requests"
	"weir/storage"
	"weir/storage/files"
	"weir/workspaces"
	"weir/workspaces/kube"
	"weir/workspaces/proxy"
	"weir/workspaces/runtime"
)

// portal is a server with its services.
type portal struct {
	cfg           config.Config
	log           *slog.Logger
	store         *store.Store
	owner         runtime.Owner // of what this server starts
	accounts      *policies.Accounts
	providers     *providers.Service
	pool          *pool.Scheduler
	catalog       *workspaces.Catalog
	runtime       workspaceRuntime
	runs          workspaceRuns
	parts         workspaceParts      // of deployments
	cluster       *kube.Runtime       // nil on one machine
	service       *workspaces.Service // of workspaces, runs and deployments
	reconciler    *workspaces.Reconciler
	broker        *broker.Service
	notifications *notifications.Service
	sender        *notifications.Sender
	periods       *requests.Periods
	files         *files.Service
	owners        *storage.Owners
	noNamespace   error // why there are no subordinate IDs
	proxy         *proxy.Proxy
	app           *handlers.App
	dataLock      *os.File            // on the data directory
	databaseLock  *store.DatabaseLock // exclusive use of the database; nil when several servers can use it
	lease         *store.ServerLease  // of this server, from before the first request
	origin        string              // URL of the portal

	host      providers.Host // this machine
	gpus      providers.Machine
	gpuDriver io.Closer // of gpus
	agents    agentEndpoint
	inside    insideEndpoint
	unchecked int // environments of this machine whose checks ran out of time
}

// workspaceRuntime is the runtime of a mode.
type workspaceRuntime interface {
	runtime.Runtime
	OnChange(listener func(workspace int64))
	Close() error
}

// workspaceRuns are the runs of a mode.
type workspaceRuns interface {
	runtime.Runs
	OnChange(listener func(run int64))
	Close() error
}

// workspaceParts are the parts of deployments of a mode.
type workspaceParts interface {
	runtime.Parts
	OnChange(listener func(part int64))
	Close() error
}

// agentEndpoint serves the agents of machines.
type agentEndpoint struct {
	authority  *authority.Authority
	enrollment *providers.Enrollment
	listener   net.Listener // nil: agents cannot join
}

// close closes everything that wirePortal has opened. Workspaces keep running.
func (p *portal) close() error {
	var errs []error
	if p.app != nil {
		p.app.Close()
	}
	if p.proxy != nil {
		p.proxy.Close()
	}
	p.releaseLease() // all connections are closed
	if p.runs != nil {
		errs = append(errs, p.runs.Close())
	}
	if p.parts != nil {
		errs = append(errs, p.parts.Close())
	}
	if p.runtime != nil {
		errs = append(errs, p.runtime.Close())
	}
	if p.agents.listener != nil {
		_ = p.agents.listener.Close() // it may be closed already
	}
	if p.inside.listener != nil {
		_ = p.inside.listener.Close() // it may be closed already
	}
	if p.gpuDriver != nil {
		errs = append(errs, p.gpuDriver.Close())
	}
	if p.databaseLock != nil {
		errs = append(errs, p.databaseLock.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	if p.dataLock != nil {
		errs = append(errs, p.dataLock.Close())
	}
	return errors.Join(errs...)
}
