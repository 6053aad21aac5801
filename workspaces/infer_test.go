package workspaces_test

import (
	"bytes"
	"testing"

	"weir/workspaces"
	"weir/workspaces/deployments/serving"
)

// A request whose deployment is replaced while it waits is checked again, with the same images.
func TestImagesAreReadTwice(t *testing.T) {
	in := workspaces.InferInput{Inputs: []workspaces.InferTensor{{Name: "pixel_values", Datatype: "FP32", Shape: []int64{2, 1, 1, 1},
		Data: []any{1.0, []any{-2.0}}}}}
	for range 2 {
		images, err := workspaces.ImagesOf(in, serving.Image{Channels: 1, Size: 1, Labels: []string{"cat"}})
		want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}
		if err != nil || len(images) != 2 || !bytes.Equal(bytes.Join(images, nil), want) || in.Inputs[0].Data != nil {
			t.Errorf("%v, %v", images, err)
		}
	}
}
