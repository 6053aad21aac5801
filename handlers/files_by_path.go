package handlers

import (
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"weir/storage/files"
)

// ByPath names a path in the shared directories of a project.
type ByPath struct {
	ByID
	Path string `query:"path" default:"/" maxLength:"12288" doc:"path in workspaces; a name can have any byte, percent-encoded"`
}

// Resolve refuses malformed queries, of which net/url ignores parts.
func (p *ByPath) Resolve(hc huma.Context) []error {
	u := hc.URL()
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return []error{&huma.ErrorDetail{Location: "query.path", Message: "must be percent-encoded"}}
	}
	return nil
}

// FileCondition makes a change of a file conditional.
type FileCondition struct {
	IfMatch     string `header:"If-Match" doc:"ETags of the file, or *; a mismatch is rejected with 412"`
	IfNoneMatch string `header:"If-None-Match" doc:"*: only if there is no file"`
}

func (c FileCondition) condition() files.Condition { return files.Condition(c) }

// FoundFile is a file with its ETag.
type FoundFile struct {
	ETag string `header:"ETag" doc:"of the content, for If-Match"`
	Body files.Entry
}

func foundFile(e files.Entry, err error) (*FoundFile, error) { return &FoundFile{e.ETag, e}, err }
