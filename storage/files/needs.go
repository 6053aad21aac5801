package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

const (
	// needsName is the manifest of a directory that is a model. That of a file has the
	// file's name before it.
	needsName = "weir.yaml"
	// maxNeeds is its size in bytes.
	maxNeeds = 64 << 10
)

// needsPaths are where the manifest of a model can be, the first one that exists counts.
func needsPaths(e Entry) []models.FilePath {
	path := string(e.Path)
	if e.Kind == beneath.Directory {
		return []models.FilePath{models.FilePath(rules.Join(path, needsName))}
	}
	dir, name := rules.Split(path)
	return []models.FilePath{models.FilePath(rules.Join(dir, name+"."+needsName)), models.FilePath(rules.Join(dir, needsName))}
}

// ModelNeeds returns the path of a model and what its manifest says that it needs; no
// manifest: nothing. The user must be able to read both.
func (s *Service) ModelNeeds(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (models.FilePath,
	models.ModelNeeds, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return "", models.ModelNeeds{}, err
	}
	e, err := s.model(v, path)
	if err != nil {
		return "", models.ModelNeeds{}, err
	}
	for _, manifest := range needsPaths(e) {
		needs, err := v.readNeeds(manifest)
		if models.KindOf(err) != models.KindNotFound || err == nil {
			return e.Path, needs, err
		}
	}
	return e.Path, models.ModelNeeds{}, nil
}

// model finds a model. Its path gets to an environment variable.
func (s *Service) model(v *view, path models.FilePath) (Entry, error) {
	clean, err := v.resolve(path)
	if err != nil {
		return Entry{}, err
	}
	if !utf8.ValidString(clean) {
		return Entry{}, models.Invalid("path", "must be valid UTF-8 for a model")
	}
	return v.stat(clean)
}

func (v *view) readNeeds(path models.FilePath) (n models.ModelNeeds, err error) {
	clean, err := v.require(path, models.AccessRead)
	if err != nil {
		return n, err
	}
	f, _, err := v.open(clean)
	if err != nil {
		return n, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxNeeds+1))
	if err != nil {
		return n, err
	}
	return parseNeeds(content)
}

// parseNeeds parses a manifest. It is anybody's text.
func parseNeeds(content []byte) (n models.ModelNeeds, err error) {
	if len(content) > maxNeeds {
		return n, models.Conflict("The file %s is larger than %s.", needsName, models.Say("%d KiB", int64(maxNeeds>>10)))
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	if err := d.Decode(&n); err != nil && !errors.Is(err, io.EOF) {
		return models.ModelNeeds{}, models.Conflict("The file %s is not valid: %s", needsName, models.Excerpt(err.Error()))
	}
	var p models.Problems
	n.Check(&p)
	if err := p.Err(); err != nil {
		return models.ModelNeeds{}, models.Conflict("The file %s is not valid: %s", needsName, p[0].Reason)
	}
	return n, nil
}

// SetModelNeeds writes the manifest of a model.
func (s *Service) SetModelNeeds(ctx context.Context, actor policies.Actor, project int64, path models.FilePath,
	needs models.ModelNeeds) (Entry, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return Entry{}, err
	}
	e, err := s.model(v, path)
	if err != nil {
		return Entry{}, err
	}
	manifest, err := v.requireChange(needsPaths(e)[0])
	if err != nil {
		return Entry{}, err
	}
	var p models.Problems
	needs.Check(&p)
	if err := p.Err(); err != nil {
		return Entry{}, err
	}
	content, err := yaml.Marshal(needs)
	if err != nil {
		return Entry{}, err
	}
	return v.write(ctx, "write", manifest, bytes.NewReader(content), int64(len(content)), Condition{})
}
