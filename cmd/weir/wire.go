package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/policies/openid"
	"weir/pool"
	"weir/pool/broker"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/pool/requests"
	"weir/storage"
	"weir/storage/files"
	"weir/workspaces"
	"weir/workspaces/deployments"
	"weir/workspaces/kube"
	"weir/workspaces/local"
	"weir/workspaces/proxy"
	"weir/workspaces/runtime"
)

// wirePortal creates the services of a portal that listens at addr. Only here
// the mode is chosen.
func wirePortal(ctx context.Context, cfg config.Config, log *slog.Logger, addr net.Addr) (p *portal, err error) {
	p = &portal{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.dataLock, err = lockDataDir(cfg.DataDir); err != nil {
		return p, err
	}
	if p.store, err = store.Open(ctx, cfg.DatabaseURL, cfg.SQLiteFile()); err != nil {
		return p, err
	}
	p.store.LogTo(log)
	if cfg.Runtime == "local" { // the server of another machine would take this one's workspaces for gone
		if p.databaseLock, err = p.store.LockDatabase(ctx); err != nil {
			return p, err
		}
	}
	if err := errors.Join(migrateUp(ctx, p.store), p.store.ReserveSpace(ctx)); err != nil {
		return p, err
	}
	if p.owner, err = ownerOf(ctx, p.store); err != nil {
		return p, err
	}
	access, err := policies.NewAccess()
	if err != nil {
		return p, err
	}
	access.Log = log
	appsDomain := p.addresses(addr)
	verdicts, err := storage.NewVerdicts(p.store)
	if err != nil {
		return p, err
	}
	dirs, err := storage.New(cfg.SharedDir, cfg.SandboxUID, cfg.SandboxUID, verdicts)
	if err != nil {
		return p, err
	}
	p.cfg.SharedDir, dirs.FollowsLinks = dirs.Root(), cfg.Runtime == "kube"
	p.store.AddDisk(models.Say("the shared directories"), p.cfg.SharedDir)
	if cfg.Runtime == "local" {
		p.store.AddDisk(models.Say("the workspaces"), p.runDirs()[0])
	}
	if err := p.separateMembers(ctx, dirs); err != nil {
		return p, err
	}
	if p.runtime, err = p.openRuntime(ctx, dirs); err != nil {
		return p, err
	}
	p.tellForeign(ctx)
	p.accounts = policies.NewAccounts(p.store, access)
	p.accounts.Provider, p.accounts.PasswordLinkLifetime = cfg.OIDC.Rules(), cfg.PasswordLinkLifetime
	root, err := dirs.OpenRoot()
	if err != nil {
		return p, err
	}
	p.files = files.New(files.Config{Store: p.store, Accounts: p.accounts, Access: access, Verdicts: verdicts, Root: root,
		Owner: dirs.Owner, MemberOf: dirs.MemberOf, QuotaID: dirs.QuotaID, Logger: log, Settings: cfg.Files})
	p.providers = providers.New(p.store, access, p.reachable(), cfg.Reservations.Objectives.Zones...)
	p.pool = pool.New(p.store, access, p.providers)
	if err := p.pool.SetPolicyByName(cfg.PlacementPolicy); err != nil {
		return p, err
	}
	if err := p.wireAgents(ctx, access); err != nil {
		return p, err
	}
	if err := p.wireNotifications(access); err != nil {
		return p, err
	}
	p.periods = requests.NewPeriods(p.store)
	p.catalog = workspaces.NewCatalog(p.store, access)
	capacity := projects.NewCapacity(p.store, access, p.pool, p.quotaDefaults())
	projectService := projects.New(p.store, access, dirs, capacity)
	projectService.InvitationLifetime = cfg.InvitationLifetime
	p.broker = broker.New(p.store, access, p.pool, cfg.Reservations)
	presets, err := deployments.OpenPresets(cfg.SplitPresets, log)
	if err != nil {
		return p, fmt.Errorf("split-presets: %w", err)
	}
	described := deployments.New(p.files, p.pool, presets, p.store, access)
	service := p.wireWorkspaces(access, dirs, described)
	p.proxy = proxy.New(proxy.Config{Gate: gate{service, p.accounts}, AppsDomain: appsDomain, Secure: cfg.TLS(),
		PortalURL: p.origin, PortalCookies: handlers.Cookies(cfg.TLS()),
		Page: p.serveWorkspaceError, Logger: log, OnActivity: p.recordActivity(service), LeaseHeld: p.leaseValid})
	p.store.OnRevoke(p.proxy)
	p.app = handlers.NewApp(handlers.Config{Store: p.store, Accounts: p.accounts, Notifications: p.notifications,
		Projects: projectService, Invitations: projects.NewInvitations(projectService, p.accounts), Capacity: capacity,
		Requests: requests.New(p.store, access, projectService, capacity),
		Pool:     p.pool, Broker: p.broker, Providers: p.providers,
		Enrollment: p.agents.enrollment, AgentsURL: p.agents.url(cfg), Catalog: p.catalog, Workspaces: service,
		Directories: dirs, Storage: storage.NewService(p.store, access, verdicts), Files: p.files, Deployments: described,
		Proxy: p.proxy, Holds: p.leaseValid, Logger: log, Collectors: p.collectors(),
		Hosts: p.hosts(), MetricsToken: cfg.MetricsToken,
		TrustedProxies: cfg.TrustedProxies, Secure: cfg.TLS(), OIDC: p.oidc(), SessionLifetime: cfg.SessionLifetime,
		Version: buildVersion().Version})
	return p, p.openSockets()
}

// wireWorkspaces creates the service and the reconciler of workspaces, runs and deployments.
func (p *portal) wireWorkspaces(access *policies.Access, dirs *storage.Directories, described *deployments.Service) *workspaces.Service {
	reconciled := workspaces.ReconcilerConfig{Store: p.store, Pool: p.pool,
		Storage: dirs, Runtime: p.runtime, Activity: runtime.ReadActivity, Env: p.workspaceEnv, Runs: p.runs, RunEnv: p.runEnv, Logger: p.log}
	served := deployments.NewServed(described, p.deploymentsDir(dirs))
	reconciled.Parts, reconciled.Served = p.parts, served
	service := workspaces.NewService(p.store, access, p.pool)
	reconciled.FollowModel, reconciled.MoveDeployment = service.FollowModel, service.MoveDeployment
	reconciled.MoveAfter = p.cfg.DeploymentMoveAfter
	p.reconciler = workspaces.NewReconciler(reconciled)
	p.runtime.OnChange(p.reconciler.Enqueue) // what answers or dies is seen at once
	service.Models, service.Defaults, service.Runs, service.FindForeign = p.files, p.cfg.Launch, p.runs, p.foreign
	service.Logs = p.runtime
	p.runs.OnChange(func(int64) { p.reconciler.StepRuns() })
	service.Parts, service.Served, service.Actors = p.parts, served, p.accounts
	p.store.OnRevoke(service)
	p.parts.OnChange(func(int64) { p.reconciler.StepDeployments() })
	p.service = service
	return service
}

// deploymentsDir is where the files of deployments are: in a cluster, with the shared directories.
func (p *portal) deploymentsDir(dirs *storage.Directories) string {
	if p.cluster != nil {
		return dirs.Root() + storage.DeploymentsDir(p.owner.Generation)
	}
	return filepath.Join(p.cfg.DataDir, "deployments")
}

// quotaDefaults is what quotas are filled from besides the GPUs. Workspaces run on this
// machine only, except in a cluster.
func (p *portal) quotaDefaults() projects.Defaults {
	d := projects.Defaults{PerGPU: p.cfg.PerGPU}
	if p.cfg.Runtime == "local" {
		d.Machine = hostResources()
	}
	return d
}

// hosts are the names under which the portal is served. Nobody else can let the name of
// this machine resolve to it.
func (p *portal) hosts() []string {
	all := slices.Clone(p.cfg.Hosts)
	if u, err := url.Parse(p.cfg.ExternalURL); err == nil && u.Hostname() != "" {
		all = append(all, u.Hostname())
	}
	if name, err := os.Hostname(); err == nil {
		all = append(all, name)
	}
	return all
}

// addresses sets the origin of the portal and returns the domain, with its port,
// of the workspaces' origins.
func (p *portal) addresses(addr net.Addr) string {
	port := ""
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.Port != 80 {
		port = ":" + strconv.Itoa(tcp.Port)
	}
	p.origin = "http://localhost" + port
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !tcp.IP.IsUnspecified() {
		p.origin = "http://" + tcp.String() // localhost is not served
	}
	if p.cfg.ExternalURL != "" {
		p.origin = p.cfg.ExternalURL
		port = ""
		if u, err := url.Parse(p.cfg.ExternalURL); err == nil && u.Port() != "" {
			port = ":" + u.Port()
		}
	}
	return p.cfg.AppsDomain + port
}

// openRuntime opens the runtime of the mode, and its runs. Those have a directory of their
// own: what a directory contains belongs to one reconciler of either kind.
func (p *portal) openRuntime(ctx context.Context, dirs *storage.Directories) (_ workspaceRuntime, err error) {
	if p.cfg.Runtime == "local" {
		dirs := p.runDirs()
		c := local.Config{Dir: dirs[0], Owner: p.owner, SandboxUID: uint32(p.cfg.SandboxUID),
			SandboxGID: uint32(p.cfg.SandboxUID), Logger: p.log, Clock: p.store.Clock, MPSDir: p.cfg.MPSDir(), Files: p.migInstanceFiles}
		if c.Program, err = os.Executable(); err != nil {
			return nil, err
		}
		r, err := local.New(c)
		if err != nil {
			return nil, err
		}
		c.Dir = dirs[1]
		if p.runs, err = local.NewRuns(c); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		c.Dir = dirs[2]
		if p.parts, err = local.NewRuns(c); err != nil {
			return nil, errors.Join(err, p.runs.Close(), r.Close())
		}
		return r, nil
	}
	if err := p.listenInside(ctx); err != nil {
		return nil, err
	}
	c := p.cfg.Kube
	c.Owner, c.Portal.Port = p.owner, p.inside.port()
	c.SharedRoot, c.UID, c.GID = p.cfg.SharedDir, int64(p.cfg.SandboxUID), int64(p.cfg.SandboxUID)
	c.Directories, c.EmptyDir = p.sharedDirectories, storage.EmptyDir
	c.Quota, c.Logger, c.Clock = p.projectQuota, p.log, p.store.Clock
	r, err := kube.New(ctx, c)
	if err != nil {
		return nil, err
	}
	p.cluster = r
	if p.runs, err = kube.NewRuns(r, dirs.RunsDir()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if p.parts, err = kube.NewParts(r, dirs.PartsDir()); err != nil {
		return nil, errors.Join(err, p.runs.Close(), r.Close())
	}
	return r, nil
}

// collectors returns the metrics of the runtime.
func (p *portal) collectors() []prometheus.Collector {
	list := []prometheus.Collector{foreignGauge{p.foreign}}
	if c, ok := p.runtime.(prometheus.Collector); ok {
		list = append(list, c)
	}
	return list
}

// oidc configures sign-in with an identity provider; nil without one.
func (p *portal) oidc() *handlers.OIDC {
	o := p.cfg.OIDC
	if o.Issuer == "" {
		return nil
	}
	return &handlers.OIDC{Origin: p.origin, SessionMax: o.SessionMax,
		Rules: *o.Rules(),
		Provider: openid.New(openid.Config{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, Name: o.Name,
			GroupsClaim: o.GroupsClaim, Now: p.store.Now})}
}
