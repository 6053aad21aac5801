package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"weir/models"
)

const (
	configName = "config.json"
	indexName  = "model.safetensors.index.json"
	extension  = ".safetensors"

	onnxExtension = ".onnx"
	onnxName      = "model.onnx"

	maxConfig = 1 << 20 // bytes
	maxFiles  = 10_000
	maxLayers = 10_000
)

// Model is the files of a model and what they say.
type Model struct {
	Files  []File // in the order of their names
	Config Config
	Facts  models.ModelFacts

	// Note says that other models of the folder were not read; empty if there are none.
	Note models.Text

	layers map[place]int // numbers of the layers
}

// Is reports whether a folder with files of these names can be a model.
func Is(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return path.Ext(name) == extension || path.Ext(name) == onnxExtension })
}

// IsName reports whether a text is the name of a file with tensors in the folder itself.
func IsName(name string) bool {
	return path.Base(name) == name && fs.ValidPath(name) && !strings.Contains(name, `\`) && path.Ext(name) == extension
}

func notName(name string) models.Text {
	return models.Say("%s is not the name of a file in the folder that ends with .safetensors", models.VisibleName(name))
}

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
		int64(maxFiles), int64(maxTensors), int64(maxLayers), int64(maxHeader/1_000_000))
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
		if headers > maxHeader || tensors > maxTensors || len(names) > maxFiles {
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
	content, err := ReadSmall(folder, indexName, maxHeader)
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

// IsONNX reports whether a file is a model in ONNX format by its name.
func IsONNX(name string) bool { return path.Ext(name) == onnxExtension }

// OpenFile is a file that can be read at any place.
type OpenFile struct {
	fs.File
	io.ReaderAt
	Size int64 // bytes
}

// Open opens a regular file of the model for reading at any place; close it.
func Open(folder fs.FS, name string) (f OpenFile, err error) {
	if f.File, err = folder.Open(name); err != nil {
		if models.KindOf(err) == models.KindNotFound || errors.Is(err, fs.ErrNotExist) {
			err = models.Conflict("The file %s was not found.", models.VisibleName(name))
		}
		return f, err
	}
	info, err := f.Stat()
	r, readable := f.File.(io.ReaderAt)
	if err == nil && (!readable || !info.Mode().IsRegular()) {
		err = refuse(name, models.Say("it is not a regular file"))
	}
	if err != nil {
		return f, errors.Join(err, f.Close())
	}
	f.ReaderAt, f.Size = r, info.Size()
	return f, nil
}

// ReadSmall reads a file that may not exist; it is nil then.
func ReadSmall(folder fs.FS, name string, most int64) ([]byte, error) {
	if _, err := fs.Stat(folder, name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f, err := Open(folder, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size > most {
		return nil, refuse(name, models.Say("it has more than %d bytes", most))
	}
	content := make([]byte, f.Size)
	return content, readFull(f, content, 0)
}
