package image

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// debPackage is an installed Debian package.
type debPackage struct {
	name     string // with its architecture where dpkg wants it
	version  string
	depends  [][]string // each of these by one of its alternatives
	provides []string
}

// installed lists the installed packages, by plain name.
func installed(ctx context.Context) (map[string]debPackage, error) {
	out, err := dpkg(ctx, "--show", "--showformat",
		`${db:Status-Status}\t${binary:Package}\t${Version}\t${Pre-Depends}, ${Depends}\t${Provides}\n`)
	if err != nil {
		return nil, err
	}
	return parsePackages(out), nil
}

func parsePackages(listing []byte) map[string]debPackage {
	packages := map[string]debPackage{}
	for line := range strings.Lines(string(listing)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		// While another program installs something, triggers of installed packages are due.
		if len(field) != 5 || !slices.Contains([]string{"installed", "triggers-awaited", "triggers-pending"}, field[0]) {
			continue
		}
		p := debPackage{name: field[1], version: field[2], depends: relations(field[3])}
		for _, r := range relations(field[4]) {
			p.provides = append(p.provides, r...)
		}
		packages[plainName(p.name)] = p
	}
	return packages
}

// relations parses a list such as “libc6 (>= 2.34), python3:any | pypy”
// without the versions, which the installed packages satisfy.
func relations(text string) (all [][]string) {
	for _, clause := range strings.Split(text, ",") {
		var alternatives []string
		for _, one := range strings.Split(clause, "|") {
			one, _, _ = strings.Cut(one, "(")
			if one = strings.TrimSpace(one); one != "" {
				alternatives = append(alternatives, plainName(one))
			}
		}
		if alternatives != nil {
			all = append(all, alternatives)
		}
	}
	return all
}

func plainName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return name
}

// closure returns the names of roots and all their dependencies except those
// in without, sorted.
func closure(packages map[string]debPackage, roots, without []string) ([]string, error) {
	providers := map[string]string{}
	for name, p := range packages {
		for _, virtual := range p.provides {
			if old := providers[virtual]; old == "" || name < old {
				providers[virtual] = name
			}
		}
	}
	seen := map[string]bool{}
	for todo := slices.Clone(roots); len(todo) > 0; {
		wanted := todo[0]
		name := wanted
		todo = todo[1:]
		if _, ok := packages[name]; !ok {
			name = providers[name]
		}
		switch p, ok := packages[name]; {
		case !ok:
			return nil, fmt.Errorf("the Debian package %s is not installed: apt-get install %s", wanted, strings.Join(roots, " "))
		case seen[name] || slices.Contains(without, name):
		default:
			seen[name] = true
			todo = append(todo, chosen(packages, providers, p.depends)...)
		}
	}
	return sorted(seen), nil
}

// chosen returns the first installed alternative of each dependency.
func chosen(packages map[string]debPackage, providers map[string]string, depends [][]string) (names []string) {
	for _, alternatives := range depends {
		for _, name := range alternatives {
			if _, ok := packages[name]; ok || providers[name] != "" {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// filesOf lists the files of the packages.
func filesOf(ctx context.Context, names []string) (paths []string, err error) {
	out, err := dpkg(ctx, append([]string{"--listfiles"}, names...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		// Other lines are about diversions.
		if path := strings.TrimSuffix(line, "\n"); strings.HasPrefix(path, "/") && path != "/." {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

func dpkg(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("asking dpkg what is installed (the image is made of Debian's packages): %w", err)
	}
	return out, nil
}
