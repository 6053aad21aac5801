package e2e

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// reference computes models as their papers describe them, one number after the other in 64 bits and
// without keeping anything: what deployments return is compared with it.
type reference struct {
	values      map[string][]float64
	hidden      int
	heads, kv   int
	width       int // of a head
	layers      int
	frequencies []float64 // of rotary embeddings
	epsilon     float64

	experts    string // of each layer; empty: there are none
	used       int    // of them, for a token
	normalized bool   // their probabilities
}

type row = []float64

// linear multiplies each row with a matrix, and adds the bias if there is one.
func (r reference) linear(x []row, name string) (y []row) {
	w, bias := r.values[name+".weight"], r.values[name+".bias"]
	for _, in := range x {
		out := make(row, len(w)/len(in))
		for i := range out {
			if bias != nil {
				out[i] = bias[i]
			}
			for j := range in {
				out[i] += w[i*len(in)+j] * in[j]
			}
		}
		y = append(y, out)
	}
	return y
}

// rms normalizes by the root of the mean square, and layerNorm also by the mean.
func (r reference) rms(x row, name string) row { return r.scaled(x, 0, name) }

func (r reference) layerNorm(x row, name string) row {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	return r.scaled(x, mean, name)
}

func (r reference) scaled(x row, mean float64, name string) row {
	square, out := 0.0, make(row, len(x))
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	for i, v := range x {
		out[i] = (v - mean) / math.Sqrt(square+r.epsilon) * r.values[name+".weight"][i]
		if bias := r.values[name+".bias"]; bias != nil {
			out[i] += bias[i]
		}
	}
	return out
}

func mapped(x []row, f func(row) row) (y []row) {
	for _, one := range x {
		y = append(y, f(one))
	}
	return y
}

func added(x, y []row) (z []row) {
	for i := range x {
		sum := make(row, len(x[i]))
		for j := range sum {
			sum[j] = x[i][j] + y[i][j]
		}
		z = append(z, sum)
	}
	return z
}

// attend is the attention of rows of heads; causal: to a row and those before it.
func (r reference) attend(q, k, v []row, causal bool) (out []row) {
	for i := range q {
		result := make(row, len(q[i]))
		for head := range r.heads {
			from, group := head*r.width, head*r.kv/r.heads*r.width
			var weights row
			sum := 0.0
			for j := range k {
				if causal && j > i {
					break
				}
				score := 0.0
				for d := range r.width {
					score += q[i][from+d] * k[j][group+d]
				}
				weights = append(weights, math.Exp(score/math.Sqrt(float64(r.width))))
				sum += weights[j]
			}
			for j, weight := range weights {
				for d := range r.width {
					result[from+d] += weight / sum * v[j][group+d]
				}
			}
		}
		out = append(out, result)
	}
	return out
}

// positioned are queries or keys of each head, normalized if the model does that, and rotated by
// their positions.
func (r reference) positioned(x []row, norm string) (y []row) {
	for at, one := range x {
		var all row
		for from := 0; from < len(one); from += r.width {
			head := one[from : from+r.width]
			if r.values[norm+".weight"] != nil {
				head = r.rms(head, norm)
			}
			rotated, half := make(row, r.width), r.width/2
			for i := range half {
				sin, cos := math.Sincos(float64(at) * r.frequencies[i])
				rotated[i], rotated[i+half] = head[i]*cos-head[i+half]*sin, head[i+half]*cos+head[i]*sin
			}
			all = append(all, rotated...)
		}
		y = append(y, all)
	}
	return y
}

// forward is what the feed-forward network of a layer, or the most probable of its experts, make of a
// token.
func (r reference) forward(x row, at string) row {
	switch r.experts {
	case "":
		return r.gated(x, at+"mlp.gate_proj", at+"mlp.up_proj", at+"mlp.down_proj")
	case "block_sparse_moe":
		return r.mixed(x, at+r.experts, "w1", "w3", "w2")
	default:
		return r.mixed(x, at+r.experts, "gate_proj", "up_proj", "down_proj")
	}
}

func (r reference) gated(x row, gate, up, down string) row {
	a, b := r.linear([]row{x}, gate)[0], r.linear([]row{x}, up)[0]
	for j, g := range a {
		a[j] = g / (1 + math.Exp(-g)) * b[j]
	}
	return r.linear([]row{a}, down)[0]
}

func (r reference) mixed(x row, at, gate, up, down string) row {
	p, all := r.linear([]row{x}, at+".gate")[0], 0.0
	for i := range p {
		p[i] = math.Exp(p[i])
		all += p[i]
	}
	var order []int
	for i := range p {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	if r.normalized {
		all = 0
		for _, i := range order[:r.used] {
			all += p[i]
		}
	}
	out := make(row, len(x))
	for _, i := range order[:r.used] {
		inner := fmt.Sprintf("%s.experts.%d.", at, i)
		for j, v := range r.gated(x, inner+gate, inner+up, inner+down) {
			out[j] += p[i] / all * v
		}
	}
	return out
}

// decode returns the logits of the token that follows others.
func (r reference) decode(tokens []int32) row {
	var x []row
	for _, t := range tokens {
		x = append(x, r.values["model.embed_tokens.weight"][int(t)*r.hidden:][:r.hidden])
	}
	for layer := range r.layers {
		at := "model.layers." + string(rune('0'+layer)) + "."
		y := mapped(x, func(one row) row { return r.rms(one, at+"input_layernorm") })
		q := r.positioned(r.linear(y, at+"self_attn.q_proj"), at+"self_attn.q_norm")
		k := r.positioned(r.linear(y, at+"self_attn.k_proj"), at+"self_attn.k_norm")
		x = added(x, r.linear(r.attend(q, k, r.linear(y, at+"self_attn.v_proj"), true), at+"self_attn.o_proj"))
		y = mapped(x, func(one row) row { return r.rms(one, at+"post_attention_layernorm") })
		x = added(x, mapped(y, func(one row) row { return r.forward(one, at) }))
	}
	last := []row{r.rms(x[len(x)-1], "model.norm")}
	if r.values["lm_head.weight"] == nil {
		return r.linear(last, "model.embed_tokens")[0]
	}
	return r.linear(last, "lm_head")[0]
}

// classify returns the logits of an image of a size, in patches of a size.
func (r reference) classify(pixels []float64, channels, size, patch int) row {
	const stem = "vit.embeddings."
	x := []row{r.values[stem+"cls_token"]}
	for top := 0; top < size; top += patch {
		for left := 0; left < size; left += patch {
			var values row
			for c := range channels {
				for i := range patch {
					values = append(values, pixels[(c*size+top+i)*size+left:][:patch]...)
				}
			}
			x = append(x, r.linear([]row{values}, stem+"patch_embeddings.projection")[0])
		}
	}
	positions := r.values[stem+"position_embeddings"]
	for i := range x {
		x[i] = added([]row{x[i]}, []row{positions[i*r.hidden:][:r.hidden]})[0]
	}
	for layer := range r.layers {
		at := "vit.encoder.layer." + string(rune('0'+layer)) + "."
		y := mapped(x, func(one row) row { return r.layerNorm(one, at+"layernorm_before") })
		inside := at + "attention.attention."
		y = r.attend(r.linear(y, inside+"query"), r.linear(y, inside+"key"), r.linear(y, inside+"value"), false)
		x = added(x, r.linear(y, at+"attention.output.dense"))
		y = r.linear(mapped(x, func(one row) row { return r.layerNorm(one, at+"layernorm_after") }), at+"intermediate.dense")
		for i := range y {
			for j, v := range y[i] {
				y[i][j] = v * math.Erfc(-v/math.Sqrt2) / 2
			}
		}
		x = added(x, r.linear(y, at+"output.dense"))
	}
	return r.linear([]row{r.layerNorm(x[0], "vit.layernorm")}, "classifier")[0]
}
