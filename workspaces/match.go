package workspaces

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// VersionConstraint is a condition of a launch on one version: of the
// language, a framework or a tool.
type VersionConstraint struct {
	Name    string
	Op      string // "", "==", ">=", "<=", ">", "<"; "" allows any version
	Version string
}

func (c VersionConstraint) String() string { return c.Name + c.Op + c.Version }

var constraintPattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._+-]{0,63}?)\s*(?:(==|>=|<=|=|>|<|\s)\s*v?([0-9][A-Za-z0-9.+-]{0,31}))?$`)

// ParseVersionConstraints reads "python>=3.11, torch", separated by commas,
// semicolons or line breaks. "=" and a space mean "==". Errors name the field.
func ParseVersionConstraints(field, text string) ([]VersionConstraint, error) {
	var constraints []VersionConstraint
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",\n;", r) }) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		m := constraintPattern.FindStringSubmatch(part)
		if m == nil || len(constraints) == 50 {
			return nil, models.Invalid(field, "%q is not a version constraint such as python>=3.11", part)
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
// "==3.11": later parts of the version are ignored.
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

// compareVersions compares dotted versions number by number; missing parts
// count as 0.
func compareVersions(a, b string) int {
	n := max(strings.Count(a, "."), strings.Count(b, ".")) + 1
	return slices.Compare(versionNumbers(a, n), versionNumbers(b, n))
}

// comparePrefix compares only as many parts as b has.
func comparePrefix(a, b string) int {
	n := strings.Count(b, ".") + 1
	return slices.Compare(versionNumbers(a, n), versionNumbers(b, n))
}

// versionNumbers returns the first n parts of a dotted version: the leading
// digits of each, or 0.
func versionNumbers(version string, n int) []int {
	numbers := make([]int, n)
	parts := strings.Split(version, ".")
	for i := range min(n, len(parts)) {
		digits := len(parts[i]) - len(strings.TrimLeft(parts[i], "0123456789"))
		numbers[i], _ = strconv.Atoi(parts[i][:digits])
	}
	return numbers
}

// Match is an environment that fits, with the versions that were requested.
type Match struct {
	Environment models.Environment
	Matched     []models.Text
}

// Mismatch is an environment that does not fit, with the reasons.
type Mismatch struct {
	Environment models.Environment
	Reasons     []models.Text
}

// MatchEnvironments divides the catalog into what fits the constraints and the
// limit of a role, best first, and what does not. Newer requested versions are
// better, then newer languages, then names in alphabetical order.
func MatchEnvironments(all []models.Environment, constraints []VersionConstraint, limit models.Resources) (matching []Match,
	refused []Mismatch) {
	for _, e := range all {
		matched, reasons := matchOne(e, constraints, limit)
		if len(reasons) == 0 {
			matching = append(matching, Match{Environment: e, Matched: matched})
		} else {
			refused = append(refused, Mismatch{Environment: e, Reasons: reasons})
		}
	}
	slices.SortStableFunc(matching, func(a, b Match) int { return compareEnvironments(a.Environment, b.Environment, constraints) })
	return matching, refused
}

// only moves the other environments to the mismatches, for a reason.
func only(fits func(models.Environment) bool, reason models.Text, matches []Match, mismatches []Mismatch) (kept []Match, _ []Mismatch) {
	for _, m := range matches {
		if fits(m.Environment) {
			kept = append(kept, m)
		} else {
			mismatches = append(mismatches, Mismatch{m.Environment, []models.Text{reason}})
		}
	}
	return kept, mismatches
}

func compareEnvironments(a, b models.Environment, constraints []VersionConstraint) int {
	for _, c := range constraints {
		if d := compareVersions(b.VersionOf(c.Name), a.VersionOf(c.Name)); d != 0 {
			return d
		}
	}
	if d := compareLanguages(a.Language, b.Language); d != 0 { // whose versions say nothing of each other
		return d
	}
	return cmp.Or(compareVersions(b.LanguageVersion, a.LanguageVersion), cmp.Compare(a.Name, b.Name))
}

// compareLanguages puts Python, the usual one, before other languages.
func compareLanguages(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if (a == "python") != (b == "python") {
		if a == "python" {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

func matchOne(e models.Environment, constraints []VersionConstraint, limit models.Resources) (matched, reasons []models.Text) {
	if !e.Unavailable.Empty() {
		reasons = append(reasons, models.Say("not available: %s", e.Unavailable))
	}
	for _, c := range constraints {
		version := e.VersionOf(c.Name)
		switch {
		case e.Unchecked():
			reasons = append(reasons, models.Say("has not been checked for %s yet", c.Name))
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
	for _, x := range need.Exceeding(limit) {
		reasons = append(reasons, models.Say("%[2]s: at least %[1]s required; your role's limit is %[3]s", models.Quantity(x.Name, x.Value),
			x.Label, models.Quantity(x.Name, x.Limit)))
	}
	return matched, reasons
}
