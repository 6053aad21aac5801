package workspaces

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Catalog manages the environments.
type Catalog struct {
	store  *store.Store
	access *policies.Access
}

// NewCatalog returns the catalog in store.
func NewCatalog(store *store.Store, access *policies.Access) *Catalog {
	return &Catalog{store: store, access: access}
}

// EnvironmentInput describes an environment to create, or to replace one.
type EnvironmentInput struct {
	Name            string                  `json:"name" maxLength:"100"`
	Language        string                  `json:"language" maxLength:"100" doc:"programming language, such as python"`
	LanguageVersion string                  `json:"language_version" maxLength:"100"`
	Versions        map[string]string       `json:"versions,omitempty" doc:"versions by framework or tool"`
	Minimum         models.Minimum          `json:"minimum,omitempty" doc:"minimum resources"`
	Launch          models.LaunchParameters `json:"launch,omitempty"`
	Image           string                  `json:"image,omitempty" maxLength:"500" doc:"container image, for Kubernetes"`
	Command         []string                `json:"command" minItems:"1" maxItems:"50" doc:"program, by its absolute path, and its arguments"`
	DefaultPath     string                  `json:"default_path,omitempty" maxLength:"500" doc:"default URL path, such as /lab"`
	NoNotebook      bool                    `json:"no_notebook,omitempty" doc:"has no notebook server: for runs and deployments, not for workspaces"`
	Version         int64                   `json:"-"`
}

// Check validates and normalizes the input.
func (in *EnvironmentInput) Check() error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Language = strings.ToLower(models.CheckName("language", in.Language, &p))
	in.LanguageVersion = models.CheckName("language_version", in.LanguageVersion, &p)
	if len(in.Versions) > 200 {
		p.Add("versions", "must have at most %d entries", 200)
	}
	for tool, version := range in.Versions {
		models.CheckName("versions", tool, &p)
		models.CheckName("versions", version, &p)
	}
	m := in.Minimum
	models.LaunchParameters{GPUs: &m.GPUs, Cores: &m.Cores, GPUMemoryMiB: &m.GPUMemoryMiB, CPUMilli: &m.CPUMilli,
		MemoryMiB: &m.MemoryMiB}.Check("minimum", &p)
	in.Launch.Check("launch", &p)
	in.checkPath(&p)
	in.Image = models.CheckText("image", in.Image, 500, &p)
	if len(in.Command) == 0 { // no runtime starts an image's own entry point
		p.Add("command", "must specify a program; an image's own entry point is not used")
	}
	for _, arg := range in.Command {
		models.CheckText("command", arg, 2000, &p)
	}
	if len(in.Command) > 0 && !strings.HasPrefix(in.Command[0], "/") {
		p.Add("command", "must start with the absolute path of a program")
	}
	return p.Err()
}

func (in *EnvironmentInput) checkPath(p *models.Problems) {
	var refused models.Problems
	models.LaunchParameters{Path: &in.DefaultPath}.Check("", &refused)
	for _, f := range refused {
		*p = append(*p, models.Field{Name: "default_path", Reason: f.Reason})
	}
}

func (in EnvironmentInput) apply(e *models.Environment) {
	e.Name, e.Language, e.LanguageVersion, e.Versions = in.Name, in.Language, in.LanguageVersion, in.Versions
	e.Minimum, e.Launch, e.Image, e.Command, e.DefaultPath = in.Minimum, in.Launch, in.Image, in.Command, in.DefaultPath
	e.NoNotebook = in.NoNotebook
	e.Unavailable = models.Text{}
}

// Environments lists the catalog.
func (c *Catalog) Environments(ctx context.Context, actor policies.Actor) ([]models.Environment, error) {
	if err := c.access.Check(actor, policies.Platform, policies.EnvironmentRead); err != nil {
		return nil, err
	}
	return c.store.Read(ctx).Environments()
}

// Environment returns one environment.
func (c *Catalog) Environment(ctx context.Context, actor policies.Actor, id int64) (models.Environment, error) {
	if err := c.access.Check(actor, policies.Platform, policies.EnvironmentRead); err != nil {
		return models.Environment{}, err
	}
	return c.store.Read(ctx).Environment(id)
}

// EnvironmentForm returns an entry for a form that changes or deletes it; with id
// 0, an empty one for a form that creates one.
func (c *Catalog) EnvironmentForm(ctx context.Context, actor policies.Actor, id int64) (e models.Environment, err error) {
	if err := c.access.Check(actor, policies.Platform, policies.EnvironmentWrite); err != nil || id == 0 {
		return e, err
	}
	return c.Environment(ctx, actor, id)
}

// CheckDelete refuses to delete an environment that workspaces or runs have used.
func (c *Catalog) CheckDelete(ctx context.Context, actor policies.Actor, id int64) error {
	if err := c.access.Check(actor, policies.Platform, policies.EnvironmentWrite); err != nil {
		return err
	}
	return checkUnused(c.store.Read(ctx), id)
}

func checkUnused(q *store.Queries, id int64) error {
	if used, err := q.EnvironmentUsed(id); err != nil || used {
		return cmp.Or[error](err, models.Conflict("This environment has been used by workspaces or runs and cannot be deleted."))
	}
	return nil
}

// MatchInput selects the environments that match.
type MatchInput struct {
	VersionConstraints string `json:"version_constraints" query:"version_constraints" maxLength:"1000" doc:"version constraints, such as python>=3.11, torch"`
}

// Match divides the catalog into the environments that satisfy the version
// constraints and those that do not. It applies no role's limit.
func (c *Catalog) Match(ctx context.Context, actor policies.Actor, in MatchInput) ([]Match, []Mismatch, error) {
	constraints, err := ParseVersionConstraints("version_constraints", in.VersionConstraints)
	if err != nil {
		return nil, nil, err
	}
	all, err := c.Environments(ctx, actor)
	if err != nil {
		return nil, nil, err
	}
	most := models.Resources{GPUCores: models.MaxAmount, GPUMemoryMiB: models.MaxAmount, CPUMilli: models.MaxAmount,
		MemoryMiB: models.MaxAmount, StorageMiB: models.MaxAmount}
	matching, refused := MatchEnvironments(all, constraints, most)
	return matching, refused, nil
}

// Create adds an environment. Only administrators have this permission, because
// the command runs in every workspace that uses the environment.
func (c *Catalog) Create(ctx context.Context, actor policies.Actor, in EnvironmentInput) (e models.Environment, err error) {
	err = c.access.Write(ctx, c.store, actor, policies.Platform, policies.EnvironmentWrite, func(q *store.Queries) error {
		if err := in.Check(); err != nil {
			return err
		}
		e = models.Environment{}
		in.apply(&e)
		return createEnvironment(q, actor, &e)
	})
	return e, err
}

func createEnvironment(q *store.Queries, actor policies.Actor, e *models.Environment) error {
	e.Version, e.CreatedAt = 1, q.Now()
	if err := q.CreateEnvironment(e); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "create", Object: "environment", ID: e.ID, After: *e})
}

// Update replaces an environment.
func (c *Catalog) Update(ctx context.Context, actor policies.Actor, id int64, in EnvironmentInput) (e models.Environment, err error) {
	err = c.access.Write(ctx, c.store, actor, policies.Platform, policies.EnvironmentWrite, func(q *store.Queries) error {
		if err := in.Check(); err != nil {
			return err
		}
		if e, err = q.Environment(id); err != nil {
			return err
		}
		if err := models.CheckVersion("environment", in.Version, e.Version); err != nil {
			return err
		}
		before := e
		in.apply(&e)
		return updateEnvironment(q, actor, before, &e)
	})
	return e, err
}

func updateEnvironment(q *store.Queries, actor policies.Actor, before models.Environment, e *models.Environment) error {
	if err := q.UpdateEnvironment(e); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "update", Object: "environment", ID: e.ID, Before: before, After: *e})
}

// Delete removes an environment that no workspace has used.
func (c *Catalog) Delete(ctx context.Context, actor policies.Actor, id int64) error {
	return c.access.Write(ctx, c.store, actor, policies.Platform, policies.EnvironmentWrite, func(q *store.Queries) error {
		e, err := q.Environment(id)
		if err != nil {
			return err
		}
		if err := checkUnused(q, id); err != nil {
			return err
		}
		if err := q.DeleteEnvironment(id); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "environment", ID: id, Before: e})
	})
}

// Register updates the catalog with the installations that were found on this
// machine: new ones are added, known ones get their current versions, and those
// that are gone become unavailable. DiscoveredKey identifies an installation. A known one
// that is found unchecked stays as it is.
func (c *Catalog) Register(ctx context.Context, found []models.Environment) error {
	actor := policies.System("discovery")
	return c.store.InTx(ctx, func(q *store.Queries) error {
		all, err := q.Environments()
		if err != nil {
			return err
		}
		known, names := []models.Environment{}, map[string]bool{}
		for _, e := range all {
			names[e.Name] = true
			if e.DiscoveredKey != nil {
				known = append(known, e)
			}
		}
		// While it is unchecked, the others have the VS Code that they had.
		unchecked := slices.ContainsFunc(found, func(e models.Environment) bool { return e.Unchecked() && e.DefaultPath == models.VSCode.Path })
		for _, d := range found {
			i := indexInstallation(known, d)
			if i >= 0 && unchecked && !d.Unchecked() {
				d = d.With(models.CodeServer, known[i].VersionOf(models.CodeServer))
			}
			if i < 0 {
				d.Name = uniqueName(d, names)
				err = createEnvironment(q, actor, &d)
			} else {
				err = refreshInstallation(q, actor, known[i], d, names)
				known = slices.Delete(known, i, i+1)
			}
			if err != nil {
				return err
			}
		}
		for _, e := range known {
			before := e
			e.Unavailable = models.Say("the installation is no longer on this machine")
			if err := updateInstallation(q, actor, before, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// indexInstallation returns the index of an installation that was found among the known
// ones, or -1. The key of an unchecked one can be provisional; its command is not.
func indexInstallation(known []models.Environment, found models.Environment) int {
	i := slices.IndexFunc(known, func(e models.Environment) bool { return *e.DiscoveredKey == *found.DiscoveredKey })
	if i >= 0 {
		return i
	}
	return slices.IndexFunc(known, func(e models.Environment) bool {
		return (e.Unchecked() || found.Unchecked()) && slices.Equal(e.Command, found.Command) && e.DefaultPath == found.DefaultPath
	})
}

func uniqueName(found models.Environment, names map[string]bool) string {
	name := found.Name
	if names[name] {
		name += " · " + *found.DiscoveredKey
	}
	names[name] = true
	return name
}

func refreshInstallation(q *store.Queries, actor policies.Actor, known, found models.Environment, names map[string]bool) error {
	if found.Unchecked() {
		return nil
	}
	e := known
	if known.Unchecked() {
		e.DiscoveredKey, e.Name = found.DiscoveredKey, uniqueName(found, names)
	}
	e.Language, e.LanguageVersion, e.Versions, e.Command = found.Language, found.LanguageVersion, found.Versions, found.Command
	e.DefaultPath, e.Unavailable = found.DefaultPath, found.Unavailable
	return updateInstallation(q, actor, known, e)
}

// updateInstallation updates an environment unless discovery found no change.
func updateInstallation(q *store.Queries, actor policies.Actor, before, e models.Environment) error {
	if before.Unavailable.String() == e.Unavailable.String() && before.LanguageVersion == e.LanguageVersion &&
		before.DefaultPath == e.DefaultPath &&
		maps.Equal(before.Versions, e.Versions) && slices.Equal(before.Command, e.Command) {
		return nil
	}
	return updateEnvironment(q, actor, before, &e)
}
