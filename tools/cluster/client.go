package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client makes the few REST calls of this package and its tests.
type Client struct{ rest *rest.RESTClient }

func newClient(kubeconfig string) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1 // no limit
	config.Timeout = 30 * time.Second
	client, err := rest.UnversionedRESTClientFor(config)
	return &Client{client}, err
}

// Do sends in as JSON, unless it is nil, and decodes the response into out,
// unless that is nil. A PATCH is a merge patch. An error response is an
// [errors.StatusError] of Kubernetes.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	request := c.rest.Verb(method).AbsPath(path).MaxRetries(0)
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		contentType := "application/json"
		if method == http.MethodPatch {
			contentType = string(types.MergePatchType)
		}
		request.SetHeader("Content-Type", contentType).Body(body)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil || out == nil {
		return err
	}
	response, _ := result.Raw() // its error is that of Error
	return json.Unmarshal(response, out)
}
