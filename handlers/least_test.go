package handlers

import (
	"regexp"
	"slices"
	"testing"
)

// chosenIn are the values that are chosen or checked in a page, of the fields whose names match.
func chosenIn(page, name string) (values []string) {
	for _, input := range regexp.MustCompile(`<input[^>]*>`).FindAllString(page, -1) {
		if found := regexp.MustCompile(` name="(` + name + `)"`).FindStringSubmatch(input); found != nil && regexp.MustCompile(` checked[ >/]`).MatchString(input) {
			value := regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(input)
			values = append(values, found[1]+"="+value[1])
		}
	}
	for _, list := range regexp.MustCompile(`(?s)<select[^>]* name="(`+name+`)".*?</select>`).FindAllStringSubmatch(page, -1) {
		for _, option := range regexp.MustCompile(`<option value="([^"]*)" selected`).FindAllStringSubmatch(list[0], -1) {
			values = append(values, list[1]+"="+option[1])
		}
	}
	return values
}

// Where a role, a scope or access is chosen, a form begins with the least.
func TestFormsBeginWithTheLeast(t *testing.T) {
	w := newWorld(t)
	root := w.as("root@example.org")
	at := "/projects/" + id(w.project)
	w.admin = w.token("root@example.org") // signing in has ended the other one
	w.create(w.admin, at+"/roles", `{"name":"chief","permission":"owner","limit":{"gpu_cores":1,"cpu_milli":100,"memory_mib":128}}`)
	least := w.create(w.admin, at+"/roles", `{"name":"reader","permission":"viewer","limit":{}}`)
	for path, want := range map[string][]string{
		at + "/invitations/new":    {"role_id=" + id(least)},
		at + "/members/new":        {"role_id=" + id(least)},
		"/tokens":                  {"scope_read=1"},
		w.filesPage("/access", ""): {"access=read"},
	} {
		if got := chosenIn(root.page(200, "GET", path), "role_id|scope_.*?|access"); !slices.Equal(got, want) {
			t.Errorf("%s begins with %v, want %v", path, got, want)
		}
	}
}
