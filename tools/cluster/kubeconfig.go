package cluster

import (
	"encoding/json"
	"os"
)

// The part of a kubeconfig that is written here. JSON is YAML.
type (
	kubeconfig struct {
		APIVersion     string         `json:"apiVersion"`
		Kind           string         `json:"kind"`
		Clusters       []namedCluster `json:"clusters"`
		Users          []namedUser    `json:"users"`
		Contexts       []namedContext `json:"contexts"`
		CurrentContext string         `json:"current-context"`
	}
	namedCluster struct {
		Name    string `json:"name"`
		Cluster struct {
			Server string `json:"server"`
			CA     []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	}
	namedUser struct {
		Name string `json:"name"`
		User struct {
			Cert []byte `json:"client-certificate-data"`
			Key  []byte `json:"client-key-data"`
		} `json:"user"`
	}
	namedContext struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	}
)

// writeKubeconfig writes to path how to reach the API server with the key of
// file. The secrets are in it, so that it can be copied as it is.
func (c *Cluster) writeKubeconfig(path, file string) error {
	var (
		cl namedCluster
		u  namedUser
		x  namedContext
	)
	cl.Name, u.Name, x.Name = "weir", file, "weir"
	x.Context.Cluster, x.Context.User = "weir", file
	cl.Cluster.Server = c.port.server()
	for from, to := range map[string]*[]byte{
		c.keys.public("ca"): &cl.Cluster.CA, c.keys.public(file): &u.User.Cert, c.keys.private(file): &u.User.Key,
	} {
		var err error
		if *to, err = os.ReadFile(from); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(kubeconfig{"v1", "Config", []namedCluster{cl}, []namedUser{u}, []namedContext{x}, "weir"}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
