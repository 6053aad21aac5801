package files

// Format is the format of an archive.
type Format string

const (
	Zip   Format = "zip" // not compressed: models and data sets hardly are compressible
	Tar   Format = "tar"
	TarGz Format = "tar.gz" // of uploads only
)

// ArchiveLimits bound an uploaded archive.
type ArchiveLimits struct {
	Entries int
	Bytes   int64 // of its content
	Ratio   int64 // of the content to the archive
}

// DefaultArchiveLimits are for models and data sets, which hardly are compressible.
var DefaultArchiveLimits = ArchiveLimits{Entries: 200_000, Bytes: 1 << 40, Ratio: 200}

// directoryBytes is how long the directory of a zip archive can be for each entry.
const directoryBytes = 512
