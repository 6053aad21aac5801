package proxy

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Both benchmarks make the same request over the same kind of socket; their
// difference is what the proxy costs with a gate that admits at once. What the
// real gate costs, “make bench-peers” shows.

func BenchmarkDirect(b *testing.B) {
	socket := serveUnix(b, answer4K)
	measure(b, clientOf("unix", socket))
}

func BenchmarkProxy(b *testing.B) {
	w := newWorld(b, answer4K)
	measure(b, clientOf("unix", serveUnix(b, w.proxy)))
}

var page4K = make([]byte, 4<<10)

var answer4K = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(page4K) })

func measure(b *testing.B, client *http.Client) {
	var mu sync.Mutex
	var took []time.Duration
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var mine []time.Duration
		for pb.Next() {
			began := time.Now()
			res, err := client.Do(request(b, "GET", "/api", nil, asOwner, "Origin: "+own))
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			mine = append(mine, time.Since(began))
		}
		mu.Lock()
		took = append(took, mine...)
		mu.Unlock()
	})
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
