//go:build cluster

package e2e

import (
	"context"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"weir/deploy"
	"weir/tools/cluster"
)

// leastRights is a kubeconfig with the rights that the chart gives to the
// portal, and no other. Whatever a server does in a test, it does with these.
func leastRights(t *testing.T, k *cluster.Cluster, release string, values ...string) string {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), gone)
	defer cancel()
	portal, made, err := deploy.Portal(ctx, admin, release, values...)
	if k.Dir() == "" { // a cluster that stays
		t.Cleanup(func() { remove(t, admin, made) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return writeAccess(t, portal)
}

func remove(t *testing.T, admin *rest.Config, made []runtime.Object) {
	applier, err := deploy.NewApplier(admin)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), gone)
		defer cancel()
		err = applier.Delete(ctx, made...)
	}
	if err != nil {
		t.Error(err)
	}
}

// writeAccess writes how to reach an API server as a file that “--kubeconfig”
// takes.
func writeAccess(t *testing.T, c *rest.Config) string {
	t.Helper()
	const name = "weir"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData,
			InsecureSkipTLSVerify: c.Insecure}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: c.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file); err != nil {
		t.Fatal(err)
	}
	return file
}
