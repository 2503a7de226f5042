package up

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// DefaultContext is what a cluster's context, cluster and user are called in kubeconfigs.
const DefaultContext = "drydock"

// mark is the extension that tells the entries of such clusters from others'.
const mark = "drydock.dev/up"

// WriteKubeconfig writes a kubeconfig with the cluster's only context, for its
// administrator, which nobody but the file's owner may read. A file that is there and
// holds anything but a cluster of this package is an error.
func (c *Cluster) WriteKubeconfig(file, context string) error {
	old, err := loadKubeconfig(file)
	if err != nil {
		return err
	}
	for _, name := range entries(old) {
		if !ours(old, name) {
			return fmt.Errorf("kubeconfig %s: has %q, which is not of a simulated cluster", file, name)
		}
	}
	return write(file, c.addTo(clientcmdapi.NewConfig(), context))
}

// MergeKubeconfig adds the cluster's context to a kubeconfig, in the place of one of the
// same name if that is of a cluster of this package; else it is an error. The current
// context stays if there is one.
func (c *Cluster) MergeKubeconfig(file, context string) error {
	old, err := loadKubeconfig(file)
	if err != nil {
		return err
	}
	_, hasContext := old.Contexts[context]
	_, hasUser := old.AuthInfos[context]
	_, hasCluster := old.Clusters[context]
	if (hasContext || hasUser || hasCluster) && !ours(old, context) {
		return fmt.Errorf("kubeconfig %s: has a %q that is not of a simulated cluster", file, context)
	}
	return write(file, c.addTo(old, context))
}

// addTo adds the cluster's entries.
func (c *Cluster) addTo(to *clientcmdapi.Config, name string) *clientcmdapi.Config {
	cluster, who, context := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo(), clientcmdapi.NewContext()
	cluster.Server, cluster.CertificateAuthorityData = c.URL(), c.ca
	cluster.Extensions[mark] = &runtime.Unknown{Raw: []byte(`{}`), ContentType: runtime.ContentTypeJSON}
	who.Token = c.token
	context.Cluster, context.AuthInfo = name, name
	to.Clusters[name], to.AuthInfos[name], to.Contexts[name] = cluster, who, context
	if to.CurrentContext == "" {
		to.CurrentContext = name
	}
	return to
}

// loadKubeconfig reads a kubeconfig; one that is not there is empty.
func loadKubeconfig(file string) (*clientcmdapi.Config, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	return config, nil
}

// entries are the names of everything in a kubeconfig.
func entries(c *clientcmdapi.Config) []string {
	var out []string
	for name := range c.Clusters {
		out = append(out, name)
	}
	for name := range c.AuthInfos {
		out = append(out, name)
	}
	for name := range c.Contexts {
		out = append(out, name)
	}
	return out
}

// ours reports whether the entries of a name are those of a cluster of this package.
func ours(c *clientcmdapi.Config, name string) bool {
	cluster := c.Clusters[name]
	if cluster == nil {
		return false
	}
	_, marked := cluster.Extensions[mark]
	context := c.Contexts[name]
	return marked && (context == nil || context.Cluster == name && context.AuthInfo == name)
}

// write writes a kubeconfig all at once, for its owner alone. A link stays one.
func write(file string, config *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	if to, err := filepath.EvalSymlinks(file); err == nil {
		file = to
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*") // for the owner alone
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}
