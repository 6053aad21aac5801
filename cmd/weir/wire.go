package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"weir/handlers"
	"weir/migrations"
	"weir/models"
	"weir/policies"
	"weir/policies/notices"
	"weir/pool"
	"weir/storage"
	"weir/workspaces"
	"weir/workspaces/kube"
	"weir/workspaces/local"
	"weir/workspaces/proxy"
)

// openStore opens the database and brings its schema up to date.
func openStore(ctx context.Context, cfg Config) (*models.Store, error) {
	store, err := models.Open(ctx, cfg.DatabaseURL, cfg.SQLiteFile())
	if err != nil {
		return nil, err
	}
	if err := migrateUp(ctx, store); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func migrateUp(ctx context.Context, store *models.Store) error {
	db, err := store.SQL()
	if err == nil {
		err = migrations.Up(ctx, db, store.Dialect())
	}
	if err == nil {
		err = store.ChainAudit(ctx)
	}
	if err != nil {
		err = fmt.Errorf("the database's schema cannot be brought up to date: %w", err)
	}
	return err
}

// portal is everything that serves, wired together. This is the only place
// where a mode is chosen.
type portal struct {
	cfg        Config
	log        *slog.Logger
	store      *models.Store
	accounts   *policies.Accounts
	pool       *pool.Pool
	catalogue  *workspaces.Catalogue
	runtime    backend
	fence      fence
	cluster    *kube.Runtime // nil on one machine
	reconciler *workspaces.Reconciler
	notices    *notices.Service
	sender     *notices.Sender
	periods    *pool.Periods
	proxy      *proxy.Proxy
	app        *handlers.App
	lock       *os.File
	alone      *models.Claim // the claim to be the only server on the database
	seat       *models.Seat  // from before the first request
	origin     string        // of the portal, as it knows itself

	host    pool.Host // this machine
	machine pool.Machine
	driver  io.Closer // of machine
	agents  agentsSide
}

// wirePortal builds the portal that answers on a listener's address.
func wirePortal(ctx context.Context, cfg Config, log *slog.Logger, addr net.Addr) (p *portal, err error) {
	p = &portal{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.lock, err = lockDir(cfg.DataDir); err != nil {
		return p, err
	}
	if p.store, err = models.Open(ctx, cfg.DatabaseURL, cfg.SQLiteFile()); err != nil {
		return p, err
	}
	if cfg.Runtime == "local" { // the server of another machine would take this one's workspaces for gone
		if p.alone, err = p.store.Alone(ctx); err != nil {
			return p, err
		}
	}
	if err := migrateUp(ctx, p.store); err != nil {
		return p, err
	}
	access, err := policies.NewAccess()
	if err != nil {
		return p, err
	}
	appsDomain := p.addresses(addr)
	dirs, err := storage.New(cfg.SharedDir, cfg.SandboxUID, cfg.SandboxUID)
	if err != nil {
		return p, err
	}
	if p.runtime, err = p.openRuntime(ctx); err != nil {
		return p, err
	}
	p.accounts = policies.NewAccounts(p.store, access)
	p.pool = pool.New(p.store, access)
	if err := p.pool.PlaceBy(cfg.PlacementPolicy); err != nil {
		return p, err
	}
	p.wireReach()
	if err := p.wireAgents(ctx); err != nil {
		return p, err
	}
	if err := p.wireNotices(access); err != nil {
		return p, err
	}
	p.periods = pool.NewPeriods(pool.PeriodsConfig{Store: p.store, Fence: p.fence.check, Logger: log})
	p.catalogue = workspaces.NewCatalogue(p.store, access)
	ledger := pool.NewLedger(p.store, access, dirs)
	promises := pool.NewPromises(p.pool)
	p.reconciler = workspaces.NewReconciler(workspaces.ReconcilerConfig{Store: p.store, Pool: p.pool, Books: p.pool, Line: p.pool, Ledger: ledger,
		Storage: mounts{dirs}, Runtime: p.runtime, Env: p.workspaceEnv, Fence: p.fence.check, Logger: log})
	p.runtime.OnChange(p.reconciler.Look) // what answers or dies is seen at once
	service := workspaces.NewService(p.store, access, p.pool, p.pool, ledger, p.reconciler.Wake)
	p.proxy = proxy.New(proxy.Config{Gate: gate{service, p.accounts}, AppsDomain: appsDomain, Secure: cfg.TLS(),
		PortalURL: func(*http.Request) string { return p.origin }, PortalCookies: []string{handlers.SessionCookie(cfg.TLS()), handlers.PassCookie(cfg.TLS())},
		Page: p.workspaceGone, Logger: log, OnActivity: p.activity(service), Holds: p.holds})
	p.store.Carry(p.proxy)
	p.app = handlers.NewApp(handlers.Config{Store: p.store, Access: access, Accounts: p.accounts, Notices: p.notices, Ledger: ledger,
		Promises: promises, Requests: pool.NewRequests(ledger, promises), Pool: p.pool,
		Enrolment: p.agents.enrolment, AgentsURL: p.agents.url(cfg), Catalogue: p.catalogue, Workspaces: service, Directories: dirs, Proxy: p.proxy, Wake: p.reconciler.Wake, Holds: p.holds, Logger: log, Collectors: p.collectors(),
		TrustedProxies: cfg.TrustedProxies, Secure: cfg.TLS(), OIDC: p.oidc(), SessionLifetime: cfg.SessionLifetime, Version: buildVersion().Version})
	return p, nil
}

// addresses settles the portal's own origin and returns the domain, with its
// port, below which workspaces have theirs.
func (p *portal) addresses(addr net.Addr) string {
	port := ""
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.Port != 80 {
		port = ":" + strconv.Itoa(tcp.Port)
	}
	p.origin = "http://localhost" + port
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !tcp.IP.IsUnspecified() {
		p.origin = "http://" + tcp.String() // nobody of ours answers for localhost
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

// instanceFiles asks this machine's driver for the files of a MIG instance.
func (p *portal) instanceFiles(ctx context.Context, uuid string) ([]string, error) {
	driver, ok := p.machine.(interface {
		Files(ctx context.Context, uuid string) ([]string, error)
	})
	if !ok {
		return nil, fmt.Errorf("no driver here knows the MIG instance %s", uuid)
	}
	return driver.Files(ctx, uuid)
}

// workspaceEnv tells a notebook where it is.
func (p *portal) workspaceEnv(w models.Workspace) map[string]string {
	return map[string]string{"WEIR_URL": p.origin, "WEIR_WORKSPACE": strconv.FormatInt(w.ID, 10),
		"WEIR_PROJECT": strconv.FormatInt(w.ProjectID, 10), "NB_PREFIX": "/"}
}

// activity records use of workspaces; a write that fails is only logged.
func (p *portal) activity(service *workspaces.Service) func(int64) {
	return func(id int64) {
		if err := service.Activity(context.Background(), id); err != nil {
			p.log.Warn("activity not recorded", "workspace", id, "err", err)
		}
	}
}

func (p *portal) workspaceGone(w http.ResponseWriter, r *http.Request, status int, err *models.Error) {
	p.app.WorkspaceGone(w, r, status, err, p.origin)
}

// discover registers what this machine has: GPUs and Jupyter.
func (p *portal) discover(ctx context.Context) (err error) {
	if p.host.Name, err = os.Hostname(); err != nil {
		return err
	}
	identity, err := identityOf(p.cfg.MachineIDFile)
	if err != nil {
		if p.cfg.MachineIDFile != "" {
			return err
		}
		identity = p.host.Name // no agent enrols from here, so it is enough
	}
	p.host.Digest = pool.MachineDigest(identity)
	if p.machine, p.driver, err = machine(p.cfg, p.host.Name); err != nil {
		return err
	}
	if p.cfg.Runtime == "kube" { // the cluster's machines have agents of their own, and images stand in the catalogue
		return nil
	}
	if err := p.pool.Enlist(ctx, p.host, p.machine); err != nil {
		return fmt.Errorf("this machine's GPUs cannot be registered: %w", err)
	}
	return p.catalogue.Register(ctx, local.Discover(ctx, uint32(p.cfg.SandboxUID)))
}

// close ends what wirePortal made. Workspaces go on running.
func (p *portal) close() error {
	var errs []error
	if p.app != nil {
		p.app.Close()
	}
	if p.proxy != nil {
		p.proxy.Close()
	}
	p.leave() // nothing is open any more
	if p.runtime != nil {
		errs = append(errs, p.runtime.Close())
	}
	if p.agents.listener != nil {
		_ = p.agents.listener.Close() // it may be closed already
	}
	if p.driver != nil {
		errs = append(errs, p.driver.Close())
	}
	if p.alone != nil {
		errs = append(errs, p.alone.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	if p.lock != nil {
		errs = append(errs, p.lock.Close())
	}
	return errors.Join(errs...)
}

// lockDir makes this process the only one that serves from dir, until it
// ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another weir serves from %s already", dir), f.Close())
	}
	return f, nil
}

// mounts lets workspaces see the shared directories.
type mounts struct{ dirs *storage.Directories }

func (m mounts) Mounts(ctx context.Context, h models.Holder) ([]workspaces.Mount, error) {
	list, err := m.dirs.Mounts(ctx, h)
	out := make([]workspaces.Mount, len(list))
	for i, d := range list {
		out[i] = workspaces.Mount(d)
	}
	return out, err
}

// gate lets visitors into workspaces as the service decides.
type gate struct {
	service  *workspaces.Service
	accounts *policies.Accounts
}

func (g gate) Redeem(ctx context.Context, workspace int64, token string) (proxy.Visit, error) {
	v, err := g.service.Redeem(ctx, workspace, token)
	return proxy.Visit{Secret: v.Secret, Expires: v.Expires, Path: v.Path}, err
}

func (g gate) Admit(ctx context.Context, workspace int64, c proxy.Credential) (t proxy.Target, err error) {
	var a models.Admission
	if c.Bearer != "" {
		actor, authErr := g.accounts.ByToken(ctx, c.Bearer)
		if authErr != nil {
			return t, authErr
		}
		a, err = g.service.AdmitActor(ctx, actor, workspace)
	} else {
		a, err = g.service.AdmitVisit(ctx, workspace, c.Cookie)
	}
	return proxy.Target{Workspace: workspace, Generation: a.Generation, Endpoint: workspaces.Endpoint(a.Endpoint), Token: a.Secret,
		Ties: []string{models.Tie("user", a.UserID), models.Tie("project", a.ProjectID), models.Tie("workspace", workspace), models.SessionTie(a.Session)}}, err
}
