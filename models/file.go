package models

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// FileAccess is what a user can do with a file, or with a directory and everything in
// it.
type FileAccess string

// Levels of access, in ascending order.
const (
	AccessNone  FileAccess = "none" // as if it did not exist
	AccessRead  FileAccess = "read"
	AccessWrite FileAccess = "write" // and read
)

// Includes reports whether a permits what other permits.
func (a FileAccess) Includes(other FileAccess) bool { return a.level() >= other.level() }

func (a FileAccess) level() int {
	switch a {
	case AccessWrite:
		return 2
	case AccessRead:
		return 1
	default:
		return 0
	}
}

// FileDownload is what a rule says about downloads.
type FileDownload string

const (
	DownloadInherit FileDownload = "inherit" // nothing
	DownloadAllow   FileDownload = "allow"
	DownloadDeny    FileDownload = "deny"
)

// FileSubject is the kind of a rule's subject.
type FileSubject string

// Kinds of subjects, the most specific first.
const (
	SubjectMember   FileSubject = "member"
	SubjectRole     FileSubject = "role"
	SubjectProject  FileSubject = "project" // all members
	SubjectEveryone FileSubject = "everyone"
)

// FilePath is an absolute path in the layout of workspaces. A name can have any byte
// but NUL and '/', so it is stored as bytes.
type FilePath string

// String is the path percent-encoded as in a URL, so that it is readable and keeps every
// byte.
func (p FilePath) String() string {
	var b strings.Builder
	for i := range len(p) {
		if c := p[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// ParseFilePath decodes a percent-encoded path.
func ParseFilePath(text string) (FilePath, error) {
	path, err := url.PathUnescape(text)
	return FilePath(path), err
}

// MarshalJSON writes the path percent-encoded.
func (p FilePath) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// UnmarshalJSON reads a percent-encoded path.
func (p *FilePath) UnmarshalJSON(data []byte) (err error) {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*p, err = ParseFilePath(text)
	return err
}

// VisibleName is a file's name for people: what cannot be seen is replaced.
func VisibleName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, string(unicode.ReplacementChar)))
}

// Excerpt is the beginning of a text, such as an error that repeats somebody's text, on one
// line for people.
func Excerpt(text string) string {
	const most = 300
	text = strings.ReplaceAll(text, "\n", " ")
	return VisibleName(text[:min(len(text), most)])
}

// Value stores the path as bytes.
func (p FilePath) Value() (driver.Value, error) { return []byte(p), nil }

// Scan reads the path from a database.
func (p *FilePath) Scan(value any) error {
	switch v := value.(type) {
	case []byte:
		*p = FilePath(v)
	case string:
		*p = FilePath(v)
	default:
		return fmt.Errorf("models: %T is not a path", value)
	}
	return nil
}

// FileRule is a rule about a path of a project.
type FileRule struct {
	ID        int64        `json:"id"`
	ProjectID int64        `json:"project_id"`
	Path      FilePath     `json:"path" doc:"percent-encoded path in workspaces"`
	Subject   FileSubject  `json:"subject" enum:"member,role,project,everyone"`
	SubjectID int64        `json:"subject_id,omitempty" doc:"ID of the member or role"` // otherwise 0
	Access    FileAccess   `json:"access" enum:"none,read,write"`
	Download  FileDownload `json:"download" enum:"inherit,allow,deny"`
	ChangedAt time.Time    `json:"changed_at"`
}

// MaxFileRules is the maximum number of rules of a project.
const MaxFileRules = 10_000
