package certificate

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

const (
	// clientPair is what the files of the client's certificate are called.
	clientPair = "kubelet-client"
	// pendingKey is where the key is while its certificate is waited for, so that a kubelet
	// that is started again asks for the same one.
	pendingKey = "kubelet-client.key.tmp"
	// issueTimeout is how long the first certificate is waited for.
	issueTimeout = time.Hour
	// serverTimeout is how long an API is waited for that doesn't answer yet.
	serverTimeout = time.Minute
	serverPeriod  = 2 * time.Second
)

// Files are where a kubelet's credentials are.
type Files struct {
	// Kubeconfig is --kubeconfig, Bootstrap --bootstrap-kubeconfig; "": there is none.
	Kubeconfig, Bootstrap string
	// Dir is --cert-dir.
	Dir string
}

// load reads a kubeconfig. Never is what a pod would have used instead.
func load(path string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	cfg, err := rules.Load()
	if err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveClientConfig(*cfg, cfg.CurrentContext, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
}

// newStore returns the store of a pair of certificate and key. cert and key are files that count
// while the directory has none.
func (f *Files) newStore(pair, cert, key string) (certificate.FileStore, error) {
	return certificate.NewFileStore(pair, f.Dir, f.Dir, cert, key)
}

// valid reports whether the kubeconfig has a certificate that has not expired (upstream
// isClientConfigStillValid). One that is there and can't be used is as good as none; one that can't
// be looked at is an error.
func (f *Files) valid() (bool, error) {
	if _, err := os.Stat(f.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("error reading existing bootstrap kubeconfig %s: %w", f.Kubeconfig, err)
	}
	certs, err := certificatesOf(f.Kubeconfig)
	if err != nil {
		klog.ErrorS(err, "Existing kubeconfig is not used", "path", f.Kubeconfig)
		return false, nil
	}
	now := time.Now()
	for _, c := range certs {
		if now.After(c.NotAfter) {
			klog.ErrorS(nil, "Part of the existing bootstrap client certificate is expired", "path", f.Kubeconfig, "notAfter", c.NotAfter)
			return false, nil
		}
	}
	return true, nil
}

// certificatesOf returns the client certificates of a kubeconfig.
func certificatesOf(path string) ([]*x509.Certificate, error) {
	cfg, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, err
	}
	return certutil.ParseCertsPEM(cfg.CertData)
}

// Load returns what the API is asked with for certificates, and what it is used with, for
// a kubelet that rotates its certificate (upstream LoadClientConfig). Without a kubeconfig that
// is still good it writes one that points to where the certificate will be.
func (f *Files) Load() (issuing, using *rest.Config, err error) {
	ok := f.Bootstrap == ""
	if !ok {
		if ok, err = f.valid(); err != nil {
			return nil, nil, err
		}
	}
	if ok {
		cfg, err := load(f.Kubeconfig)
		if err != nil {
			return nil, nil, fmt.Errorf("unable to load kubeconfig: %w", err)
		}
		klog.V(2).InfoS("No bootstrap necessary, the kubeconfig is used", "path", f.Kubeconfig)
		return cfg, rest.CopyConfig(cfg), nil
	}
	store, err := f.newStore(clientPair, "", "")
	if err != nil {
		return nil, nil, fmt.Errorf("unable to build bootstrap cert store: %w", err)
	}
	if issuing, err = load(f.Bootstrap); err != nil {
		return nil, nil, fmt.Errorf("unable to load bootstrap kubeconfig: %w", err)
	}
	using = rest.AnonymousClientConfig(issuing)
	using.CertFile, using.KeyFile = store.CurrentPath(), store.CurrentPath()
	if err := f.write(issuing, store.CurrentPath()); err != nil {
		return nil, nil, err
	}
	klog.V(2).InfoS("A certificate is asked for with the bootstrap credentials, the kubeconfig points to where it will be", "path", f.Kubeconfig)
	return issuing, using, nil
}

// write makes the kubeconfig: the bootstrap's cluster, and a certificate that is in a file.
func (f *Files) write(bootstrap *rest.Config, pair string) error {
	cluster := &clientcmdapi.Cluster{Server: bootstrap.Host, InsecureSkipTLSVerify: bootstrap.Insecure, CertificateAuthority: bootstrap.CAFile}
	if bootstrap.CAFile == "" {
		cluster.CertificateAuthorityData = bootstrap.CAData
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default-cluster": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": {ClientCertificate: pair, ClientKey: pair}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}},
		CurrentContext: "default-context",
	}, f.Kubeconfig)
}

// Request gets the client's certificate and writes the kubeconfig, unless there is one that is
// good, for a kubelet that doesn't rotate its certificate (upstream LoadClientCert). It waits
// for the certificate for an hour.
func (f *Files) Request(ctx context.Context, node string) error {
	if ok, err := f.valid(); ok || err != nil {
		return err
	}
	cfg, err := load(f.Bootstrap)
	if err != nil {
		return fmt.Errorf("unable to load bootstrap kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("unable to create certificates signing request client: %w", err)
	}
	store, err := f.newStore(clientPair, "", "")
	if err != nil {
		return fmt.Errorf("unable to build bootstrap cert store: %w", err)
	}
	pending := filepath.Join(f.Dir, pendingKey)
	key := currentKey(store)
	if key == nil {
		if key, _, err = keyutil.LoadOrGenerateKeyFile(pending); err != nil {
			return err
		}
	}
	if err := awaitServer(ctx, cfg); err != nil {
		klog.InfoS("Error waiting for apiserver to come up", "err", err)
	}
	cert, err := request(ctx, client, node, key)
	if err != nil {
		return err
	}
	if _, err := store.Update(cert, key); err != nil {
		return err
	}
	if err := os.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		klog.V(2).InfoS("Failed cleaning up private key file", "path", pending, "err", err)
	}
	return f.write(cfg, store.CurrentPath())
}

// currentKey is the key of the certificate that is there, or nil.
func currentKey(store certificate.Store) []byte {
	cert, err := store.Current()
	if err != nil || cert.PrivateKey == nil {
		return nil
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(cert.PrivateKey)
	if err != nil {
		return nil
	}
	return key
}

// request asks for the client's certificate and waits for it.
func request(ctx context.Context, client kubernetes.Interface, node string, keyPEM []byte) ([]byte, error) {
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("invalid private key for certificate request: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("private key does not implement crypto.Signer")
	}
	subject := subjectOf(node)
	data, err := certutil.MakeCSR(key, &subject, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("unable to generate certificate request: %w", err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if _, ok := key.(*rsa.PrivateKey); ok {
		usages = append(usages, certificatesv1.UsageKeyEncipherment)
	}
	name, err := requestName(signer.Public(), &subject, usages)
	if err != nil {
		return nil, err
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, name, certificatesv1.KubeAPIServerClientKubeletSignerName, nil, usages, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, issueTimeout)
	defer cancel()
	klog.V(2).InfoS("Waiting for client certificate to be issued", "csr", name)
	return csr.WaitForCertificate(ctx, client, name, uid)
}

// subjectOf is whose a node's certificates are.
func subjectOf(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
}

// requestName names a request by what is asked for, so that asking again for the same finds the
// first one. It is upstream's name: a kubelet of the one takes over the request of the other.
func requestName(public crypto.PublicKey, subject *pkix.Name, usages []certificatesv1.KeyUsage) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	h := sha512.New512_256()
	part := func(b []byte) {
		h.Write([]byte(base64.RawURLEncoding.EncodeToString(b)))
		h.Write([]byte("|")) // which no part has in it
	}
	part(der)
	part([]byte(subject.CommonName))
	for _, o := range subject.Organization {
		part([]byte(o))
	}
	for _, u := range usages {
		part([]byte(u))
	}
	return "node-csr-" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
}

// awaitServer waits until the API answers, for a minute.
func awaitServer(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = time.Second
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, serverPeriod, serverTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
		if err != nil {
			klog.InfoS("Failed to connect to apiserver", "err", err)
		}
		return err == nil, nil
	})
}
