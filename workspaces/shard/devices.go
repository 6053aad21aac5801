package shard

import (
	"fmt"
	"strconv"
	"strings"

	"weir/models"
)

// ParseDevices parses devices, each MEMORY, MEMORY:TFLOPS or MEMORY:TFLOPS:GBPS, such as
// 24GiB:100:25. A text can have several, separated by commas. The error is for the field
// device.
func ParseDevices(texts []string) (list []models.ModelDevice, err error) {
	for _, text := range texts {
		for one := range strings.SplitSeq(text, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			d, ok := parseDevice(one)
			if !ok {
				return nil, models.Invalid("device", "must be memory such as 24GiB, optionally with speed and link such as 24GiB:100:25")
			}
			if d.Name = fmt.Sprintf("#%d", len(list)); len(list) == MaxDevices {
				return nil, models.Invalid("device", "must be at most %d devices", int64(MaxDevices))
			}
			list = append(list, d)
		}
	}
	return list, nil
}

func parseDevice(text string) (models.ModelDevice, bool) {
	parts := strings.Split(text, ":")
	mib, err := models.ParseMiB(parts[0], 1)
	d := models.ModelDevice{MemoryBytes: product(mib, 1<<20), TFLOPS: DefaultTFLOPS, LinkGBps: DefaultLinkGBps}
	if err != nil || mib < 1 || len(parts) > 3 {
		return d, false
	}
	for i, part := range parts[1:] {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || !(n >= 1e-6 && n <= 1e9) {
			return d, false
		}
		if i == 0 {
			d.TFLOPS = n
		} else {
			d.LinkGBps = n
		}
	}
	return d, true
}

// CheckLoad refuses loads out of bounds.
func CheckLoad(batch, context int64) (Load, error) {
	var p models.Problems
	if batch < 1 || batch > MaxBatch {
		p.Add("batch", "must be from 1 to %d", int64(MaxBatch))
	}
	if context < 1 || context > MaxContext {
		p.Add("context", "must be from 1 to %d", int64(MaxContext))
	}
	return Load{batch, context}, p.Err()
}
