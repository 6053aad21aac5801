package config

import (
	"fmt"
	"time"

	"weir/models"
)

// storageSettings are the settings of shared files.
var storageSettings = []setting{
	{name: "trash-retention", kind: "DURATION", defaultText: "720h",
		help: "how long deleted files are kept in the trash",
		set:  into(func(c *Config) *time.Duration { return &c.Files.TrashAge }, durationFrom(time.Hour))},
	{name: "version-retention", kind: "DURATION", defaultText: "720h",
		help: "how long overwritten versions of files are kept",
		set:  into(func(c *Config) *time.Duration { return &c.Files.VersionAge }, durationFrom(time.Hour))},
	{name: "storage-grace", kind: "DURATION", defaultText: "168h",
		help: "how long a project or member can exceed a storage limit before workspaces mount the shared directories read-only",
		set:  into(func(c *Config) *time.Duration { return &c.Files.Grace }, durationFrom(0))},
	{name: "storage-sweep-interval", kind: "DURATION", defaultText: "1m",
		help: "how often unfinished operations, the trash and storage limits are checked",
		set:  into(func(c *Config) *time.Duration { return &c.Files.SweepEvery }, durationWithin(time.Second, time.Hour))},
	{name: "storage-scan-interval", kind: "DURATION", defaultText: "24h",
		help: "how often the files of a project are measured",
		set:  into(func(c *Config) *time.Duration { return &c.Files.ScanEvery }, durationFrom(time.Minute))},
	{name: "storage-scan-rate", kind: "COUNT", defaultText: "5000",
		help: "how many files a second a measurement reads at most",
		set:  into(func(c *Config) *int { return &c.Files.ScanRate }, countWithin[int](1, 1_000_000))},
	{name: "archive-max-entries", kind: "COUNT", defaultText: "200000",
		help: "how many files and directories an uploaded archive can have, and a downloaded one in ZIP format",
		set:  into(func(c *Config) *int { return &c.Files.Archive.Entries }, countWithin[int](1, 10_000_000))},
	{name: "archive-max-size", kind: "SIZE", defaultText: "1TiB",
		help: "size of the content that an uploaded archive can have",
		set:  into(func(c *Config) *int64 { return &c.Files.Archive.Bytes }, parseBytes)},
	{name: "archive-max-ratio", kind: "COUNT", defaultText: "200",
		help: "how many times larger than the archive its content can be",
		set:  into(func(c *Config) *int64 { return &c.Files.Archive.Ratio }, countWithin[int64](1, 10_000))},
}

// countWithin parses a number.
func countWithin[T int | int64](minimum, maximum T) func(string) (T, error) {
	return func(text string) (T, error) {
		n, err := models.ParseCount(text)
		if err != nil || n < int64(minimum) || n > int64(maximum) {
			return 0, fmt.Errorf("%q must be a number from %d to %d", text, minimum, maximum)
		}
		return T(n), nil
	}
}

func parseBytes(text string) (int64, error) {
	n, err := parseMiB(text)
	return n << 20, err
}
