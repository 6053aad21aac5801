package cluster

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig with the key of file to path. It contains
// the keys, so that it can be copied.
func (c *Cluster) writeKubeconfig(path, file string) error {
	server, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	server.Server = c.port.server()
	for from, to := range map[string]*[]byte{
		c.keys.public("ca"): &server.CertificateAuthorityData, c.keys.public(file): &user.ClientCertificateData,
		c.keys.private(file): &user.ClientKeyData,
	} {
		var err error
		if *to, err = os.ReadFile(from); err != nil {
			return err
		}
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{CurrentContext: "weir",
		Clusters:  map[string]*clientcmdapi.Cluster{"weir": server},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{file: user},
		Contexts:  map[string]*clientcmdapi.Context{"weir": {Cluster: "weir", AuthInfo: file}}}, path)
}
