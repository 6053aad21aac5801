package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// modelFiles are what a deployment reads besides safetensors files and their index.
var modelFiles = []string{"config.json", "generation_config.json", "tokenizer.json", tokenizerConfigName, chatTemplateName}

// Files is the state of the files in a folder that a deployment reads: a digest of their
// names, sizes and times, in hexadecimal. Content that changes with neither is not noticed.
func Files(folder fs.ReadDirFS) (string, error) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(modelFiles, name) && !strings.HasSuffix(name, ".safetensors") && !strings.HasSuffix(name, ".safetensors.index.json") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
