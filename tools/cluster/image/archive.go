package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Image is an OCI archive on disk, ready to be imported.
type Image struct {
	Name string // the reference that a pod names
	Path string // the archive, a tar file
}

// settings are the defaults of the image's containers.
type settings struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// write builds the archive of an image with one layer. The layer is not
// compressed: it is never transferred, and unpacking delays the first pod. The
// archive is written atomically.
func (im Image) write(s settings, fill func(*tar.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(im.Path), 0o755); err != nil {
		return err
	}
	layer, err := os.CreateTemp(filepath.Dir(im.Path), "layer-")
	if err != nil {
		return err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	sum := sha256.New()
	tw := tar.NewWriter(io.MultiWriter(layer, sum))
	if err := errors.Join(fill(tw), tw.Close()); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(im.Path), "archive-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	if err := errors.Join(im.assemble(out, s, layer, sum), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), im.Path)
}

// assemble writes the layer and the documents that refer to it.
func (im Image) assemble(w io.Writer, s settings, layer *os.File, sum hash.Hash) error {
	size, err := layer.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	layerDigest := fmt.Sprintf("sha256:%x", sum.Sum(nil))
	conf := mustJSON(object{"architecture": runtime.GOARCH, "os": "linux", "config": s,
		"rootfs": object{"type": "layers", "diff_ids": []string{layerDigest}}})
	mani := mustJSON(object{"schemaVersion": 2, "mediaType": typeManifest, "config": describe(typeConfig, conf),
		"layers": []descriptor{{typeLayer, layerDigest, size, nil}}})
	entry := describe(typeManifest, mani)
	entry.Annotations = map[string]string{"io.containerd.image.name": im.Name}

	a := archive{tar.NewWriter(w)}
	return errors.Join(
		a.document("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)),
		a.document("index.json", mustJSON(object{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{entry}})),
		a.document(blob(entry.Digest), mani),
		a.document(blob(describe(typeConfig, conf).Digest), conf),
		a.file(blob(layerDigest), 0o644, size, layer),
		a.Close())
}

type archive struct{ *tar.Writer }

func (a archive) document(name string, content []byte) error {
	return a.file(name, 0o644, int64(len(content)), bytes.NewReader(content))
}

func (a archive) file(name string, mode, size int64, content io.Reader) error {
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(a, content)
	return err
}

func describe(mediaType string, content []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content)), Size: int64(len(content))}
}

// blob is the path of a blob in an archive.
func blob(digest string) string { return "blobs/sha256/" + digest[len("sha256:"):] }

// object is a JSON object.
type object = map[string]any

// mustJSON encodes an object of the types above, which cannot fail.
func mustJSON(v object) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("image: %v", err))
	}
	return text
}
