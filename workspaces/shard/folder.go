package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"weir/models"
)

const (
	indexName = "model.safetensors.index.json"
	onnxName  = "model.onnx"

	maxFiles  = 10_000
	maxLayers = 10_000
)

// Read reads the facts of the model in a folder: config.json, the index if there is one,
// and the headers of the files with tensors, whose files must implement io.ReaderAt. Errors:
// conflict with the reason, if there is no model or it is not valid.
func Read(folder fs.FS) (Model, error) {
	config, err := readConfig(folder)
	if err != nil {
		return Model{}, err
	}
	index, err := readIndex(folder)
	if err != nil {
		return Model{}, err
	}
	names := slices.Sorted(maps.Values(index))
	m := Model{Config: config}
	if index == nil {
		if names, m.Note, err = tensorFiles(folder); err != nil {
			return Model{}, err
		}
	}
	if err := m.readFiles(folder, slices.Compact(names)); err != nil {
		return Model{}, err
	}
	if err := m.checkNames(index); err != nil {
		return Model{}, err
	}
	if m.Facts = m.facts(); len(m.Facts.Layers) > maxLayers {
		return Model{}, tooLarge()
	}
	return m, nil
}

func tooLarge() error {
	return models.Conflict("The model is too large: at most %d files, %d tensors, %d layers and %d MB of headers.",
		int64(maxFiles), int64(maxTensors), int64(maxLayers), int64(maxHeaders/1_000_000))
}

// readFiles reads the headers.
func (m *Model) readFiles(folder fs.FS, names []string) error {
	if len(names) == 0 {
		return models.Conflict("The folder contains no tensors in files that end with .safetensors or .onnx.")
	}
	headers, tensors := int64(0), 0
	for _, name := range names {
		f, err := Open(folder, name)
		if err != nil {
			return err
		}
		read := ReadFile
		if path.Ext(name) == onnxExtension {
			read = readONNX
		}
		file, err := read(name, f, f.Size)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		headers, tensors = headers+file.Header, tensors+len(file.Tensors)
		if headers > maxHeaders || tensors > maxTensors || len(names) > maxFiles {
			return tooLarge()
		}
		m.Files = append(m.Files, file)
	}
	return nil
}

// checkNames refuses a name that two files have, and entries of the index that are not so.
func (m *Model) checkNames(index map[string]string) error {
	at := map[string]string{}
	for _, f := range m.Files {
		for _, t := range f.Tensors {
			if other, known := at[t.Name]; known {
				return refuse(f.Name, models.Say("%s has a tensor %s, too", models.VisibleName(other), models.VisibleName(t.Name)))
			}
			at[t.Name] = f.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if at[name] != index[name] {
			return refuse(indexName, models.Say("%s has no tensor %s", models.VisibleName(index[name]), models.VisibleName(name)))
		}
	}
	return nil
}

// readIndex reads which file has which tensor; nil without an index.
func readIndex(folder fs.FS) (map[string]string, error) {
	content, err := ReadSmall(folder, indexName, maxHeaders)
	if content == nil || err != nil {
		return nil, err
	}
	index := map[string]string{}
	d := json.NewDecoder(bytes.NewReader(content))
	err = object(d, func(key string) error {
		if key != "weight_map" {
			var other json.RawMessage
			return d.Decode(&other)
		}
		return object(d, func(tensor string) error {
			var file string
			err := d.Decode(&file)
			if err == nil && !IsName(file) {
				return refuse(indexName, notName(file))
			}
			index[tensor] = file
			return err
		})
	})
	_, known := errors.AsType[*models.Error](err)
	switch repeated, ok := errors.AsType[repeatedKey](err); {
	case known:
		return nil, err
	case ok:
		return nil, refuse(indexName, models.Say("the name %s occurs twice", models.VisibleName(string(repeated))))
	case err != nil || len(index) == 0:
		return nil, refuse(indexName, models.Say("it has no weight_map with names of files"))
	}
	return index, nil
}

// tensorFiles are the files with tensors of a folder without an index: those in ONNX format
// only if there are no others, and only model.onnx if it is there, because exporters put other
// precisions of the same model beside it. note says which ones are not read.
func tensorFiles(folder fs.FS) (names []string, note models.Text, err error) {
	var other []string
	list, err := fs.ReadDir(folder, ".")
	for _, e := range list {
		switch ext := path.Ext(e.Name()); {
		case e.IsDir():
		case ext == extension:
			names = append(names, e.Name())
		case ext == onnxExtension:
			other = append(other, e.Name())
		}
	}
	if len(names) == 0 {
		names = other
	}
	if len(names) > 1 && slices.Contains(names, onnxName) {
		note = models.Say("The directory has %d models in ONNX format; only model.onnx is read.", len(names))
		names = []string{onnxName}
	}
	return names, note, err
}
