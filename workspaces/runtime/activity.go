package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"weir/models"
	"weir/workspaces/idleness"
)

// maxActivity is the maximum size of a report of activity in bytes: about 1,000 kernels.
const maxActivity = 64 << 10

// GetNotebook requests a path of a notebook server with its token. It follows no
// redirect, and the connection ends with the response.
func GetNotebook(ctx context.Context, at models.Endpoint, token, path string) (*http.Response, error) {
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, at.Network, at.Address)
			},
		},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "token "+token)
	return client.Do(r)
}

// ReadActivity asks a notebook server what works in it; see [JupyterFiles]. The
// observation has no time and no GPU. A server without the extension gives an error.
func ReadActivity(ctx context.Context, at models.Endpoint, token string) (o idleness.Observation, err error) {
	response, err := GetNotebook(ctx, at, token, "/weir/activity")
	if err != nil {
		return o, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return o, fmt.Errorf("the notebook server reports no activity: %s", response.Status)
	}
	var report struct {
		Kernels []struct {
			Busy     bool    `json:"busy"`
			Executed float64 `json:"executed"`
		} `json:"kernels"`
		Terminals []struct {
			Typed float64 `json:"typed"`
		} `json:"terminals"`
		CPU float64 `json:"cpu_seconds"`
		IO  float64 `json:"io_bytes"`

		Memory *float64 `json:"memory_bytes"` // nil: of a server with an earlier extension
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxActivity)).Decode(&report); err != nil {
		return o, fmt.Errorf("the notebook server's report of activity: %w", err)
	}
	o.Kernels = int64(len(report.Kernels))
	for _, k := range report.Kernels {
		if k.Busy {
			o.Busy = true
			o.BusyKernels++
		}
		o.Executed = youngest(o.Executed, k.Executed)
	}
	for _, t := range report.Terminals {
		o.Typed = youngest(o.Typed, t.Typed)
	}
	o.CPU, o.IOBytes, o.MemoryBytes = seconds(report.CPU), bytes(report.IO), -1
	if report.Memory != nil {
		o.MemoryBytes = bytes(*report.Memory)
	}
	return o, nil
}

// youngest returns the smaller of two ages.
func youngest(known *time.Duration, age float64) *time.Duration {
	if d := seconds(age); known == nil || d < *known {
		return &d
	}
	return known
}

// bytes converts a number that a notebook gave, which may be any.
func bytes(n float64) int64 { return int64(min(max(n, 0), math.MaxInt64/2)) }

// seconds converts a number that a notebook gave, which may be any.
func seconds(n float64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(max(n, 0), century) * float64(time.Second))
}
