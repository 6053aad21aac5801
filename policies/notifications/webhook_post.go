package notifications

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"weir/models"
)

// post sends a delivery to its webhook.
func (s *Sender) post(ctx context.Context, w models.Webhook, d models.Delivery) outcome {
	now := s.Store.Now()
	secrets, err := secretsOf(s.Key, w, now)
	if err != nil {
		return failed(models.Say("The secret of this webhook cannot be read because the authority file has changed. Rotate the secret."))
	}
	body, err := s.bodyOf(d)
	if err != nil {
		return s.notGenerated(ctx, d, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return failed(models.Say("The address is invalid: %s", errorText(err)))
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "Weir/" + s.Version, "Weir-Event": d.Kind,
		"Weir-Delivery": d.Key, "Weir-Signature": signature(secrets, now, body)} {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return failed(connectionError(err))
	}
	defer res.Body.Close()
	return responseOutcome(res)
}

// bodyOf is the message with the URL of its object.
func (s *Sender) bodyOf(d models.Delivery) ([]byte, error) {
	var e models.Event
	if err := json.Unmarshal([]byte(d.Body), &e); err != nil {
		return nil, err
	}
	if e.Path != "" {
		e.URL = s.Origin + e.Path
	}
	return json.Marshal(e)
}

func responseOutcome(res *http.Response) outcome {
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	o := outcome{status: int64(res.StatusCode), answer: excerpt(string(raw))}
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		o.done = true // even if the rest of the response was not read
		return o
	case err != nil && o.answer == "":
		o.problem = connectionError(err)
		return o
	case code >= 300 && code < 400:
		o.problem = models.Say("The receiver returned status %d, a redirect. Redirects are not followed; use the final address.", code)
	default:
		o.problem = models.Say("The receiver returned status %d.", code)
	}
	// A busy or slow receiver has not rejected the message.
	o.refused = res.StatusCode >= 400 && res.StatusCode < 500 &&
		res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusTooManyRequests
	if seconds, err := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		o.wait = min(time.Duration(seconds)*time.Second, maxBackoff)
	}
	return o
}
