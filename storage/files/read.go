package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
)

// Content is an open file.
type Content struct {
	File  *os.File
	Entry Entry
	*Transfer
}

// Close closes the file and ends the transfer.
func (c *Content) Close() error {
	c.end()
	return c.File.Close()
}

// Open opens a file for a download; close it. sends is whether its content is wanted and
// not only its header.
func (s *Service) Open(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, sends bool) (*Content, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireDownload)
	if err != nil {
		return nil, err
	}
	f, info, err := v.open(clean)
	if err != nil {
		return nil, err
	}
	if sends && s.downloads.isNew(v, clean, info) {
		if err := v.auditDownload(ctx, clean, info.Size); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &Content{f, v.entry(clean, info), s.transfers.begin(v, clean)}, nil
}

// open opens a regular file.
func (v *view) open(path string) (*os.File, beneath.Info, error) {
	dir, name, err := v.parent(path)
	if err != nil {
		return nil, beneath.Info{}, err
	}
	defer dir.Close()
	f, info, err := dir.Open(name)
	if info.Kind == beneath.Directory {
		return nil, info, models.Conflict("This is a directory.")
	}
	return f, info, fileError(err)
}

func (v *view) auditDownload(ctx context.Context, path string, bytes int64) error {
	return v.Store.InTx(ctx, func(q *store.Queries) error {
		return v.actor.Audit(q, policies.Change{Action: "download", Object: "file", Project: v.project, After: audited(path, bytes)})
	})
}

// Checksum returns the SHA-256 of a file, in hexadecimal.
func (s *Service) Checksum(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (
	sum string, e Entry, err error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireRead)
	if err != nil {
		return "", e, err
	}
	f, info, err := v.open(clean)
	if err != nil {
		return "", e, err
	}
	defer f.Close()
	h := sha256.New()
	for err == nil {
		_, err = io.CopyN(h, f, copiedAtOnce)
		err = errors.Join(err, ctx.Err())
	}
	if ctx.Err() != nil || !errors.Is(err, io.EOF) {
		return "", e, err
	}
	return hex.EncodeToString(h.Sum(nil)), v.entry(clean, info), nil
}
