package workspaces

import (
	"regexp"
	"sort"
	"strconv"
	"strings"

	"weir/models"
	"weir/pool/quota"
)

// VersionConstraint is what a launch asks of one version: of the language, a
// framework or a tool.
type VersionConstraint struct {
	Name    string
	Op      string // "", "==", ">=", "<=", ">", "<"; "" wants any version
	Version string
}

func (c VersionConstraint) String() string { return c.Name + c.Op + c.Version }

var constraintPattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._+-]{0,63}?)\s*(?:(==|>=|<=|=|>|<|\s)\s*v?([0-9][A-Za-z0-9.+-]{0,31}))?$`)

// ParseVersionConstraints reads "python>=3.11, torch", separated by commas or
// line breaks. "=" and a space want the version or a later patch of
// it, like "==".
func ParseVersionConstraints(field, text string) ([]VersionConstraint, error) {
	var constraints []VersionConstraint
	var p models.Problems
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == ';' }) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		m := constraintPattern.FindStringSubmatch(part)
		if m == nil || len(constraints) == 50 {
			p.Add(field, "%q is not a version constraint such as python>=3.11", part)
			return nil, p.Err()
		}
		op := strings.TrimSpace(m[2])
		if op == "=" || (op == "" && m[3] != "") {
			op = "=="
		}
		constraints = append(constraints, VersionConstraint{Name: strings.ToLower(m[1]), Op: op, Version: m[3]})
	}
	return constraints, nil
}

// allows reports whether a version satisfies the constraint. 3.11.2 satisfies
// "==3.11": versions are compared as far as the constraint names them.
func (c VersionConstraint) allows(version string) bool {
	switch c.Op {
	case "":
		return true
	case "==":
		return comparePrefix(version, c.Version) == 0
	case ">=":
		return compareVersions(version, c.Version) >= 0
	case "<=":
		return comparePrefix(version, c.Version) <= 0
	case ">":
		return comparePrefix(version, c.Version) > 0
	default:
		return compareVersions(version, c.Version) < 0
	}
}

// compareVersions compares dotted versions number by number; what is no
// number counts as 0, missing parts too.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if d := versionPart(as, i) - versionPart(bs, i); d != 0 {
			return sign(d)
		}
	}
	return 0
}

// comparePrefix compares only as many parts as b has.
func comparePrefix(a, b string) int {
	as, n := strings.Split(a, "."), strings.Count(b, ".")+1
	if len(as) > n {
		as = as[:n]
	}
	return compareVersions(strings.Join(as, "."), b)
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	digits := parts[i]
	if cut := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); cut >= 0 {
		digits = digits[:cut]
	}
	n, _ := strconv.Atoi(digits)
	return n
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// Match is an environment that fits, and what of it was wanted.
type Match struct {
	Environment models.Environment
	Matched     []models.Text
}

// Mismatch is an environment that does not fit, and why.
type Mismatch struct {
	Environment models.Environment
	Reasons     []models.Text
}

// MatchEnvironments sorts the catalogue into what fits the constraints and the
// limit of a role, best first, and what does not. Among what fits, newer
// versions of what was asked for come first, then newer languages, then names.
func MatchEnvironments(all []models.Environment, constraints []VersionConstraint, limit models.Resources) ([]Match, []Mismatch) {
	var matching []Match
	var refused []Mismatch
	for _, e := range all {
		matched, reasons := matchOne(e, constraints, limit)
		if len(reasons) == 0 {
			matching = append(matching, Match{Environment: e, Matched: matched})
		} else {
			refused = append(refused, Mismatch{Environment: e, Reasons: reasons})
		}
	}
	sort.SliceStable(matching, func(i, j int) bool { return better(matching[i].Environment, matching[j].Environment, constraints) })
	return matching, refused
}

func better(a, b models.Environment, constraints []VersionConstraint) bool {
	for _, c := range constraints {
		if d := compareVersions(versionOf(a, c.Name), versionOf(b, c.Name)); d != 0 {
			return d > 0
		}
	}
	if d := compareVersions(a.LanguageVersion, b.LanguageVersion); d != 0 {
		return d > 0
	}
	return a.Name < b.Name
}

func matchOne(e models.Environment, constraints []VersionConstraint, limit models.Resources) (matched, reasons []models.Text) {
	if !e.Unavailable.Empty() {
		reasons = append(reasons, models.Say("not available: %s", e.Unavailable))
	}
	for _, c := range constraints {
		version := versionOf(e, c.Name)
		switch {
		case version == "":
			reasons = append(reasons, models.Say("does not have %s", c.Name))
		case !c.allows(version):
			reasons = append(reasons, models.Say("has %s %s; %s is required", c.Name, version, c.String()))
		default:
			matched = append(matched, models.Say("%s %s", c.Name, version))
		}
	}
	m := e.Minimum
	need := models.Demand{GPUs: m.GPUs, Cores: m.Cores, GPUMemoryMiB: m.GPUMemoryMiB, CPUMilli: m.CPUMilli, MemoryMiB: m.MemoryMiB}.Resources()
	for _, x := range quota.Exceeded(need, limit) {
		reasons = append(reasons, models.Say("%[2]s: at least %[1]s required; your role's limit is %[3]s", models.Quantity(x.Name, x.Value), x.Label, models.Quantity(x.Name, x.Limit)))
	}
	return matched, reasons
}

func versionOf(e models.Environment, name string) string {
	if strings.EqualFold(name, e.Language) {
		return e.LanguageVersion
	}
	for tool, version := range e.Versions {
		if strings.EqualFold(tool, name) {
			return version
		}
	}
	return ""
}
