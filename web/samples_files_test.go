package web

import (
	"time"

	"weir/models"
)

// sampleModel is a model that fits on two devices, or on none.
func sampleModel(files FilesView, possible bool) ModelFactsView {
	v := ModelFactsView{FilesView: files, Done: true, Form: Form{Values: map[string]string{"batch": "1", "context": "4096"}}, ServiceTypes: []Option{{Label: "by the architecture"}, {"sequential", "sequential"}}}
	part := models.ModelPart{Device: models.ModelDevice{Name: "gpu-node-1 #0", Model: "NVIDIA H200", Simulated: true, MemoryBytes: 80 << 30}, First: "input", Last: "model.layers.1", Until: 3,
		Weights: 60 << 30, KVCache: 2 << 30, Activations: 1 << 30, Total: 63 << 30, Seconds: 0.5}
	v.Report = models.ModelReport{Memory: models.ModelMemory{Batch: 1, Context: 4096, Weights: 120 << 30, Total: 120 << 30, Partial: !possible},
		Facts: models.ModelFacts{Architecture: "MixtralForCausalLM", Files: 2, Tensors: 99, Parameters: 64 << 30, Bytes: 120 << 30, Heads: 32, KVHeads: 8, Experts: 8, ExpertsUsed: 2,
			Types: []models.ModelType{{Type: "BF16", Tensors: 99, Bytes: 120 << 30}}, Layers: []models.ModelLayer{{Name: "input", Kind: models.LayerInput, Tensors: 1, Bytes: 1 << 30}, {Name: "model.layers.0", Kind: models.LayerInner, Tensors: 90, Bytes: 100 << 30}, {Name: "output", Kind: models.LayerOutput, Tensors: 8, Bytes: 2 << 30}}},
		Plan: models.ModelPlan{Split: models.SplitLayers, Combine: models.CombinePassOn, MarginPercent: 10, Reasons: []models.Text{models.Say("It is cut between layers.")}}}
	if possible {
		last := part
		last.First, last.Last = "output", "output"
		v.Report.Plan.Possible, v.Report.Plan.Parts, v.Report.Plan.Seconds = true, []models.ModelPart{part, last}, 1.5
	}
	return v
}

func fileSamples() []sample {
	files := sampleFiles()
	files.HasModel = true
	readOnly := files
	readOnly.Directory.Access, readOnly.Next, readOnly.Rows = models.AccessRead, "", nil
	found := files
	found.Query, found.Partial = "model", true
	refused := files
	refused.Form = Form{Values: map[string]string{"directory": "a/b"}}.Refuse(models.Invalid("directory", "is not a valid name for a file"))
	model := FileView{FilesView: files, NoPreview: models.Say("There is no preview."), Model: &ModelView{Needs: models.ModelNeeds{Environment: "PyTorch", Minimum: models.Minimum{GPUs: 1, GPUMemoryMiB: 20 << 10}},
		Form: Form{Values: map[string]string{"model_environment": "PyTorch"}}}}
	notebook := FileView{FilesView: files, Preview: "notebook", VersionAge: 720 * time.Hour, Versions: []FileVersionRow{{ID: 3, Bytes: 2048, At: ago(time.Hour), By: "Li Wei", Download: true, Changeable: true}}}
	notebook.Directory = files.Rows[1]
	deleted := notebook
	deleted.Gone = true
	count := int64(3)
	return []sample{
		{"files", "/projects/1/files", &li, FilesPage(files)},
		{"files-read-only", "/projects/1/files", &li, FilesPage(readOnly)},
		{"files-found", "/projects/1/files?q=model", &li, FilesPage(found)},
		{"files-refused", "/projects/1/files", &li, FilesPage(refused)},
		{"model-facts", "/projects/1/files/model", &li, ModelFactsPage(sampleModel(files, true))},
		{"model-facts-none", "/projects/1/files/model", &li, ModelFactsPage(sampleModel(files, false))},
		{"file-model", "/projects/1/files/entry", &li, FilePage(model)},
		{"file", "/projects/1/files/entry", &li, FilePage(notebook)},
		{"file-deleted", "/projects/1/files/entry", &li, FilePage(deleted)},
		{"file-preview", "/projects/1/files/preview", &li, FilePreviewPage(FilePreviewView{Name: "train.ipynb", Cells: []NotebookCell{{HTML: "<h1>Title</h1>"}, {Code: true, Source: "print(42)", Count: &count, Outputs: []NotebookOutput{{Text: "42"}, {Image: "data:image/png;base64,iVBORw0KGgo="}, {Text: "failed", Failed: true}}}}})},
		{"file-move", "/projects/1/files/move", &li, MovePage(MoveView{ProjectID: 1, Directory: "/notebook/1/project_model", Items: []models.FilePath{"/notebook/1/project_model/a"}})},
		{"trash", "/projects/1/files/trash", &li, TrashPage(TrashView{ProjectID: 1, Project: "vision", Member: true, Age: 720 * time.Hour, Lost: "/notebook/1/lost+found", Rows: []TrashRow{{ID: 7, Path: "/notebook/1/project_model/old", Directory: true, Bytes: 5 << 30, At: ago(time.Hour), By: "Li Wei", Changeable: true}, {ID: 6, Path: "/notebook/1/project_model/notes", Versions: true, Changeable: true}}})},
		{"trash-empty", "/projects/1/files/trash", &li, TrashPage(TrashView{ProjectID: 1, Project: "vision", Age: 24 * time.Hour})},
		{"file-access", "/projects/1/files/access", &root, FileAccessPage(sampleFileAccess())},
		{"file-access-own", "/projects/1/files/access", &li, FileAccessPage(FileAccessView{ProjectID: 1, Project: "vision", Path: "/notebook/1/project_model", Verdict: FileVerdict{Access: models.AccessRead, Ended: true}})},
		{"file-rules", "/projects/1/files/rules", &root, FileRulesPage(FileRulesView{ProjectID: 1, Project: "vision", Rows: sampleFileAccess().Rules})},
		{"file-rules-none", "/projects/1/files/rules", &root, FileRulesPage(FileRulesView{ProjectID: 1, Project: "vision"})},
	}
}

func sampleFiles() FilesView {
	const dir = "/notebook/1/project_model"
	return FilesView{ProjectID: 1, Project: "vision", Member: true, CanRule: true, Sort: "size", Down: true, Next: "/projects/1/files?cursor=x",
		Directory: FileRow{Name: "project_model", Path: dir, Kind: "directory", Access: models.AccessWrite, Download: true, Changeable: false, Modified: now},
		Crumbs:    []Link{{"vision", "/projects/1/files"}},
		Roots:     []FileRoot{{models.Say("Project"), "/notebook/1", true}, {models.Say("My directory"), "/notebook/1/12", false}},
		Tree: []FileBranch{{Label: models.Say("Project"), Path: "/notebook/1", Branches: []FileBranch{{Label: models.Say("%s", "Li Wei"), Path: "/notebook/1/12"},
			{Label: models.Say("%s", "project_model"), Path: dir, Branches: []FileBranch{{Label: models.Say("%s", "checkpoints"), Path: dir + "/checkpoints"}}, Partial: true}}},
			{Label: models.Say("Public models"), Path: "/notebook/model_public"}},
		Storage: []StorageView{{Label: models.Say("Project storage"), Used: 7 << 30, Reserved: 1 << 30, LimitMiB: 16 << 10}, {Label: models.Say("My storage"), Used: 1 << 30, LimitMiB: 4 << 10}},
		Rows: []FileRow{
			{Name: "checkpoints", Path: dir + "/checkpoints", Kind: "directory", Modified: ago(time.Hour), Access: models.AccessWrite, Download: true, Changeable: true},
			{Name: "train.ipynb", Path: dir + "/train.ipynb", Kind: "file", Size: 34567, Modified: ago(time.Minute), Access: models.AccessWrite, Download: true, Changeable: true},
			{Name: "secret.pt", Path: dir + "/secret.pt", Kind: "file", Size: 7 << 30, Modified: ago(90 * time.Hour), Access: models.AccessRead},
			{Name: "team", Path: dir + "/team", Kind: "other", Modified: ago(90 * time.Hour), Access: models.AccessWrite, Download: true, Changeable: true},
		}}
}

func sampleFileAccess() FileAccessView {
	rules := []FileRuleRow{{ID: 4, Path: "/notebook/1/project_model/secret.pt", Subject: models.SubjectRole, SubjectID: 2, Name: "engineer", Access: models.AccessRead, Download: models.DownloadDeny},
		{ID: 5, Path: "/notebook/1/project_model", Subject: models.SubjectMember, SubjectID: 12, Name: "Li Wei", Access: models.AccessNone, Download: models.DownloadInherit},
		{ID: 6, Path: "/notebook/1/project_model", Subject: models.SubjectEveryone, Access: models.AccessRead, Download: models.DownloadAllow}}
	v := FileAccessView{ProjectID: 1, Project: "vision", Path: "/notebook/1/project_model/secret.pt", Crumbs: []Link{{"vision", "/projects/1/files"}}, CanRule: true, SeesRules: true, Member: "Li Wei",
		Verdict: FileVerdict{Access: models.AccessRead}, Rules: rules, Why: append(rules[:1:1], FileRuleRow{Path: "/notebook/1/project_model", Subject: models.SubjectProject, Access: models.AccessWrite, Download: models.DownloadInherit}),
		Members: []MemberVerdictRow{{12, "Li Wei", "engineer", FileVerdict{Access: models.AccessRead}}}, Previewing: true,
		Effects: []FileEffectRow{{"Li Wei", "engineer", FileVerdict{Access: models.AccessRead}, FileVerdict{Access: models.AccessNone}}, {"Anna Berg", "lead", FileVerdict{Access: models.AccessWrite, Download: true}, FileVerdict{Access: models.AccessWrite, Download: true}}}}
	for _, reason := range []string{"file", "missing", "hidden", "replaceable", "download"} {
		v.Limits = append(v.Limits, FileLimit{Path: v.Path, Access: models.AccessRead, Mounted: models.AccessWrite, Reason: reason})
	}
	v.Offer(rules)
	return v
}
