package deployments

import (
	"bytes"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"

	"weir/workspaces/shard"
)

//go:embed presets.yaml
var presetsYAML []byte

// Presets are the splits that the program has, by service type.
func Presets() ([]shard.Preset, error) { return parsePresets(presetsYAML) }

func parsePresets(text []byte) (list []shard.Preset, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("presets of splits: %w", err)
	}
	for i, p := range list {
		if wrong := p.Check(); wrong != "" {
			return nil, fmt.Errorf("presets of splits: entry %d: %s", i+1, wrong)
		}
	}
	return list, nil
}
