package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/handlers"
	"weir/models"
)

// largerConfig is a decoder that computes for so long that everything else counts for little.
const largerConfig = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":512,"intermediate_size":1536,"num_hidden_layers":8,
	"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":256,"max_position_embeddings":512,"rms_norm_eps":1e-5,"torch_dtype":"float32"}`

// BenchmarkParts measures the same model on one part and on two, over REST and in turns: a prompt
// of 256 tokens, which passes the parts in 8 chunks, and 8 completions of 32 tokens at once. It
// reports how much faster two parts are. With M chunks on P parts, P-1 of M+P-1 steps are lost, so
// M·P/(M+P-1), 16/9, is possible for the prompt.
//
//	go test -run '^$' -bench Parts -benchtime 5x ./e2e
func BenchmarkParts(b *testing.B) {
	s := newServer(b, options{gpus: "h100:2", args: quiet})
	team := s.team("servers", resources{GPUCores: 200, GPUMemoryMiB: 80_000, CPUMilli: 16_000, MemoryMiB: 32_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	dir := ada.writesModel(s, team.Project, "larger", largerConfig, decoderOf(512, 1536, 8, 1))
	var on []served
	for _, parts := range []int{1, 2} {
		var d handlers.Deployment
		ada.must("POST", "/deployments", map[string]any{"project_id": team.Project, "path": dir, "parts": parts, "service_type": "text-generation",
			"cores": 40, "context": 300, "batch": 8, "manual_updates": true}, &d)
		on = append(on, served{b, ada, d.ID})
		on[len(on)-1].serves()
		b.Cleanup(on[len(on)-1].ends)
	}
	prompt := make([]int, 256)
	for i := range prompt {
		prompt[i] = 7 * i % 256
	}
	b.Run("prompt", func(b *testing.B) {
		benchParts(b, on, 1, map[string]any{"prompt": prompt, "max_tokens": 1, "temperature": 0})
	})
	b.Run("completions", func(b *testing.B) {
		benchParts(b, on, 8, map[string]any{"prompt": []int{1, 2, 3}, "max_tokens": 32, "temperature": 0})
	})
}

// ends stops the deployment, and waits until its processes have ended.
func (d served) ends() {
	d.t.Helper()
	d.m.must("POST", fmt.Sprintf("/deployments/%d/stop", d.id), nil, nil)
	eventually(d.t, gone, func() string {
		if v := d.get(); v.State != models.DeploymentStopped {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
}

// benchParts sends so many requests at once to each deployment in turn.
func benchParts(b *testing.B, on []served, requests int, body map[string]any) {
	took := make([]time.Duration, len(on))
	for b.Loop() {
		for i, d := range on {
			began := time.Now()
			var all sync.WaitGroup
			for range requests {
				all.Go(func() {
					var c handlers.Completion
					if status := d.m.call("POST", fmt.Sprintf("/deployments/%d/v1/completions", d.id), body, &c); status != 200 {
						b.Errorf("the status is %d", status)
					}
				})
			}
			all.Wait()
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "×faster")
	b.ReportMetric(took[1].Seconds()/float64(b.N), "s/on-two")
}
