package workspaces_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces"
)

var constraints = map[string]string{ // "" is refused
	"python>=3.11, torch": "python>=3.11|torch", "Torch == 2.5": "torch==2.5", "torch=2": "torch==2", "torch 2.5.1": "torch==2.5.1", "torch v2": "torch==2",
	"a\nb;c,,": "a|b|c", "c++>11": "c++>11", "x<2, y<=3": "x<2|y<=3", "scikit-learn>=1.5": "scikit-learn>=1.5",
	"=1": "", "torch>": "", ">=3": "", "torch!=2": "", "torch ~ 2": "", "3.11": "", "torch>=x": "", "a b c": "", "a\x00": "", "ａ": "",
}

func written(list []workspaces.VersionConstraint) string {
	var words []string
	for _, w := range list {
		words = append(words, w.String())
	}
	return strings.Join(words, "|")
}

func TestParseWishes(t *testing.T) {
	for text, want := range constraints {
		got, err := workspaces.ParseVersionConstraints("version_constraints", text)
		if (err != nil) != (want == "") || written(got) != want {
			t.Errorf("%q is %q, %v; want %q", text, written(got), err, want)
		}
	}
	for _, long := range []string{strings.Repeat("x", 10_000), strings.Repeat("a,", 51), "a>=" + strings.Repeat("9", 100)} {
		if got, err := workspaces.ParseVersionConstraints("version_constraints", long); models.KindOf(err) != models.KindInvalid || got != nil {
			t.Errorf("%.20q is %v, %v", long, got, err)
		}
	}
	if got, err := workspaces.ParseVersionConstraints("version_constraints", " ,\n"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParseWishes(f *testing.F) {
	for text := range constraints {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := workspaces.ParseVersionConstraints("version_constraints", text)
		if err != nil {
			return
		}
		again, err := workspaces.ParseVersionConstraints("version_constraints", strings.ReplaceAll(written(list), "|", ","))
		if err != nil || written(again) != written(list) {
			t.Errorf("%q reads as %q, that as %q, %v", text, written(list), written(again), err)
		}
		workspaces.MatchEnvironments([]models.Environment{{Language: "python", LanguageVersion: text}}, list, models.Resources{})
	})
}

func env(name, python, torch string) models.Environment {
	e := models.Environment{Name: name, Language: "python", LanguageVersion: python}
	if torch != "" {
		e.Versions = map[string]string{"Torch": torch}
	}
	return e
}

func TestMatchEnvironments(t *testing.T) {
	gone := env("gone", "3.13", "2.9")
	gone.Unavailable = models.Say("removed")
	big := env("big", "3.10", "2.0")
	big.Minimum = models.Minimum{GPUs: 2, Cores: 100}
	all := []models.Environment{env("old", "3.9.2", "1.13"), env("new", "3.12.1", "2.5.1+cu121"), env("plain", "3.11", ""), env("ten", "3.10.0", "2.10"), gone, big}
	limit := models.Resources{GPUCores: 100}
	for constraint, want := range map[string]string{
		"": "new plain ten old", "python": "new plain ten old", "python==3.1": "", "python==3": "new plain ten old", "python=3.12": "new", "python>=3.10": "new plain ten",
		"python>3.11": "new", "python<3.11": "ten old", "python<=3.11": "plain ten old", "torch": "ten new old", "TORCH>=2": "ten new", "torch==2.5": "new", "torch==2.5.1": "new",
		"torch<2": "old", "torch, python>=3.11": "new", "jax": "", "rust": "",
	} {
		list, err := workspaces.ParseVersionConstraints("version_constraints", constraint)
		if err != nil {
			t.Fatal(err)
		}
		fits, refused := workspaces.MatchEnvironments(all, list, limit)
		var names []string
		for _, m := range fits {
			names = append(names, m.Environment.Name)
			if len(m.Matched) != len(list) {
				t.Errorf("%q: %s has %d reasons", constraint, m.Environment.Name, len(m.Matched))
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q finds %q, want %q", constraint, got, want)
		}
		for _, m := range refused {
			if len(m.Reasons) == 0 || m.Reasons[0].Empty() {
				t.Errorf("%q: nothing says why %s does not fit", constraint, m.Environment.Name)
			}
		}
		if len(fits)+len(refused) != len(all) {
			t.Errorf("%q loses environments", constraint)
		}
	}
}
