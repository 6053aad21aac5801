package storage

import "testing"

func TestPurpose(t *testing.T) {
	for target, want := range map[string]string{
		"/home/jovyan":               "The home directory, with which Jupyter begins",
		"/notebook/5":                "All directories of the project. In Jupyter: team",
		"/notebook/5/2":              "The home directory, by the path that all members use. In Jupyter also: team/2",
		"/notebook/5/3":              "The home directory of another member. In Jupyter: team/3",
		"/notebook/5/project_model":  "Models of the project. In Jupyter: team/project_model",
		"/notebook/5/project_data/x": "Files of the project. In Jupyter: team/project_data/x",
		"/public_dataset":            "Datasets for all projects. In a terminal only",
		"/notebook/50":               "",
		"/mnt":                       "",
	} {
		if got := Purpose(target, 5, 2).String(); got != want {
			t.Errorf("%s: %q instead of %q", target, got, want)
		}
	}
}
