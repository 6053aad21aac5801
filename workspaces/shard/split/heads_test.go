package split

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/shard"
)

// matrix is a tensor of a test, with values that say where they are.
type matrix struct {
	name string
	rows int
	cols int // 0: a vector
}

// heads is a decoder with four heads for keys and values, and other sizes that they do not divide.
var heads = []matrix{{"model.embed_tokens.weight", 30, 16}, {"model.norm.weight", 16, 0}, {"lm_head.weight", 30, 16},
	{"model.layers.0.input_layernorm.weight", 16, 0}, {"model.layers.0.post_attention_layernorm.weight", 16, 0},
	{"model.layers.0.self_attn.q_proj.weight", 16, 16}, {"model.layers.0.self_attn.k_proj.weight", 8, 16},
	{"model.layers.0.self_attn.v_proj.weight", 8, 16}, {"model.layers.0.self_attn.o_proj.weight", 16, 16},
	{"model.layers.0.mlp.gate_proj.weight", 21, 16}, {"model.layers.0.mlp.up_proj.weight", 21, 16}, {"model.layers.0.mlp.down_proj.weight", 16, 21},
	{"model.layers.0.self_attn.q_proj.bias", 16, 0}, {"model.layers.0.self_attn.o_proj.bias", 16, 0}, {"model.layers.0.self_attn.q_norm.weight", 2, 0}}

const headsConfig = `{"architectures":["LlamaForCausalLM"],"hidden_size":16,"intermediate_size":21,"num_hidden_layers":1,"vocab_size":30,
	"num_attention_heads":8,"num_key_value_heads":4}`

// writeHeads writes a model of matrices of 2 bytes a value.
func writeHeads(t testing.TB, list []matrix) string {
	t.Helper()
	dir := t.TempDir()
	header, at, content := map[string]any{}, 0, []byte{}
	for i, m := range list {
		shape := []int{m.rows, m.cols}[:1+min(m.cols, 1)]
		n := m.rows * max(m.cols, 1)
		header[m.name] = map[string]any{"dtype": "BF16", "shape": shape, "data_offsets": []int{at, at + 2*n}}
		for value := range n {
			content = binary.LittleEndian.AppendUint16(content, uint16(i<<10|value))
		}
		at += 2 * n
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "model.safetensors"), append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), content...))
	write(t, filepath.Join(dir, "config.json"), []byte(headsConfig))
	return dir
}

// plannedByHeads is a model with a plan by heads on n devices.
func plannedByHeads(t testing.TB, dir string, n int) (shard.Model, models.ModelPlan) {
	t.Helper()
	m, err := shard.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	r := shard.Request{Load: shard.Load{Batch: 1, Context: 8}, ServiceType: "x", All: true,
		Presets: []shard.Preset{{ServiceType: "x", Split: models.SplitHeads, Combine: models.CombineSum}}}
	for range n {
		r.Devices = append(r.Devices, models.ModelDevice{MemoryBytes: 1 << 40, TFLOPS: 1, LinkGBps: 1e9})
	}
	plan, err := shard.Plan(m.Facts, r)
	if err != nil || !plan.Possible || len(plan.Parts) != n {
		t.Fatalf("%+v, %v", plan, err)
	}
	return m, plan
}

// TestSplitByHeads divides a decoder among two to four parts: each has the rows and columns of
// its heads, and together they are the model again.
func TestSplitByHeads(t *testing.T) {
	dir := writeHeads(t, heads)
	for n := 2; n <= 4; n++ {
		m, plan := plannedByHeads(t, dir, n)
		out := t.TempDir()
		manifest, err := Split(t.Context(), os.DirFS(dir), root(t, out), m, plan)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range manifest.Parts {
			from, until := plan.Parts[i].From, plan.Parts[i].Until
			checkHeads(t, filepath.Join(out, p.File), from, until)
			if p.Size > plan.Parts[i].Weights+2000 { // of the header
				t.Errorf("part %d of %d has %d bytes, and %d were planned", i, n, p.Size, plan.Parts[i].Weights)
			}
		}
		back := t.TempDir()
		if _, err := Merge(t.Context(), os.DirFS(out), root(t, back)); err != nil {
			t.Fatal(err)
		}
		same(t, dir, back)
	}
}

// checkHeads compares a part with the values of its heads.
func checkHeads(t *testing.T, name string, from, until int) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := shard.ReadFile("part.safetensors", bytes.NewReader(content), int64(len(content)))
	if err != nil || len(file.Tensors) != len(heads) {
		t.Fatalf("%d tensors, %v", len(file.Tensors), err)
	}
	for _, tensor := range file.Tensors {
		for i, m := range heads {
			if m.name != tensor.Name {
				continue
			}
			var want []uint16
			for row := range m.rows {
				for col := range max(m.cols, 1) {
					at, size := row, m.rows
					if base := filepath.Base(m.name); base == "model.layers.0.self_attn.o_proj.weight" || base == "model.layers.0.mlp.down_proj.weight" {
						at, size = col, m.cols
					}
					divided := m.cols > 0 || strings.HasSuffix(m.name, "q_proj.bias")
					if !divided || size*from/4 <= at && at < size*until/4 {
						want = append(want, uint16(i<<10|(row*max(m.cols, 1)+col)))
					}
				}
			}
			got := make([]uint16, tensor.Bytes()/2)
			if _, err := binary.Decode(content[tensor.From:tensor.Until], binary.LittleEndian, got); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of heads %d to %d is %v, not %v", m.name, from, until, got, want)
			}
		}
	}
}

// TestSplitByHeadsRefuses refuses what it would have to guess.
func TestSplitByHeadsRefuses(t *testing.T) {
	for name, change := range map[string]matrix{
		"an unknown matrix": {"model.layers.0.mlp.other.weight", 16, 16},
		"an unknown bias":   {"model.layers.0.mlp.other.bias", 16, 0},
		"other heads":       {"model.layers.0.self_attn.q_proj.weight", 15, 16},
	} {
		list := append([]matrix{change}, heads[:5]...)
		m, plan := plannedByHeads(t, writeHeads(t, list), 2)
		if _, err := m.Cut(plan); models.KindOf(err) != models.KindConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestColumnsInAnyPieces reads columns and rows in pieces of every size.
func TestColumnsInAnyPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, step, width := 1+random.Int64N(5), 1+random.Int64N(9), int64(0)
		width = 1 + random.Int64N(step)
		content := make([]byte, n*step+3)
		for i := range content {
			content[i] = byte(i)
		}
		from := random.Int64N(step - width + 1)
		var left, right, all []byte
		for row := range n {
			line := content[row*step:][:step]
			left, right, all = append(left, line[from:from+width]...), append(right, line[from+width:]...), append(all, line[from:]...)
		}
		one := func() *columns {
			return &columns{bytes.NewReader(content), shard.Range{From: from, Until: from + (n-1)*step + width, Width: width, Step: step}, from}
		}
		if got := pieces(t, one(), 1+random.IntN(7)); !bytes.Equal(got, left) || one().Bytes() != int64(len(left)) {
			t.Fatalf("columns %d to %d of %d: %v, not %v", from, from+width, step, got, left)
		}
		both := &rows{of: []io.Reader{bytes.NewReader(left), bytes.NewReader(right)}, widths: []int64{width, step - from - width}, left: width}
		if got := pieces(t, both, 1+random.IntN(7)); !bytes.Equal(got, all) {
			t.Fatalf("rows of %d and %d: %v, not %v", width, step-from-width, got, all)
		}
	}
}

// pieces reads everything with a buffer of a size.
func pieces(t *testing.T, r io.Reader, size int) (all []byte) {
	t.Helper()
	buffer := make([]byte, size)
	for {
		n, err := r.Read(buffer)
		all = append(all, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil || n == 0 {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
}
