package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// modelFiles are what a deployment reads besides safetensors files, their index and what is in [poolingName].
var modelFiles = slices.Concat([]string{configName, generationName, tokenizerName, tokenizerConfigName, chatTemplateName},
	embeddingFiles)

// Files is the state of the files in a folder that a deployment reads: a digest of their
// names, sizes and times, in hexadecimal. Content that changes with neither is not noticed.
func Files(folder fs.ReadDirFS) (string, error) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	add := func(name string, info fs.FileInfo) {
		fmt.Fprintf(digest, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(modelFiles, name) && !strings.HasSuffix(name, ".safetensors") && !strings.HasSuffix(name, ".safetensors.index.json") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		add(name, info)
	}
	if info, err := fs.Stat(folder, poolingName); err == nil {
		add(poolingName, info)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
