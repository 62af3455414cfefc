package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// validity is far longer than any test run, and short enough that a leaked credential is worth nothing.
const validity = 7 * 24 * time.Hour

// serviceIP is the first address of the service range 10.96.0.0/16: the one that the service "kubernetes" gets.
var serviceIP = net.IPv4(10, 96, 0, 1)

// clients are the identities that get a kubeconfig, by file name: who they are is what RBAC's bootstrap roles expect.
var clients = map[string]pkix.Name{
	"admin":                   {CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
	"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
	"kube-scheduler":          {CommonName: "system:kube-scheduler"},
}

// writeCredentials fills directory with all that the parts need to trust each other at the API server's URL server:
// ca.crt, the server's apiserver.{crt,key}, the service account keys sa.{key,pub}, and for each client its
// NAME.{crt,key} and NAME.kubeconfig. The authority's own key is kept nowhere.
func writeCredentials(directory, server string) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), serviceIP},
	}
	files := map[string][]byte{"ca.crt": ca.pem}
	if files["apiserver.crt"], files["apiserver.key"], err = ca.issue(serving); err != nil {
		return err
	}
	if files["sa.pub"], files["sa.key"], err = newKeyPair(); err != nil {
		return err
	}
	for name, subject := range clients {
		template := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		crt, key, err := ca.issue(template)
		if err != nil {
			return err
		}
		files[name+".crt"], files[name+".key"] = crt, key
		if files[name+".kubeconfig"], err = kubeconfig(name, server, ca.pem, crt, key); err != nil {
			return err
		}
	}
	return writeFiles(directory, files)
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "kubernetes"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	ca := &authority{certificate: template, key: key}
	der, err := ca.sign(template, key)
	if err != nil {
		return nil, err
	}
	ca.pem = pemBlock("CERTIFICATE", der)
	ca.certificate, err = x509.ParseCertificate(der)
	return ca, err
}

// issue makes a new key and the certificate for it, both as PEM.
func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := a.sign(template, private)
	if err != nil {
		return nil, nil, err
	}
	key, err = privatePEM(private)
	return pemBlock("CERTIFICATE", der), key, err
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(validity)
	return x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
}

// newKeyPair makes the keys with which service account tokens are signed and checked, both as PEM.
func newKeyPair() (public, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	private, err = privatePEM(key)
	return pemBlock("PUBLIC KEY", der), private, err
}

func kubeconfig(user, server string, ca, crt, key []byte) ([]byte, error) {
	const cluster = "controlplane"
	return clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{cluster: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*api.AuthInfo{user: {ClientCertificateData: crt, ClientKeyData: key}},
		Contexts:       map[string]*api.Context{cluster: {Cluster: cluster, AuthInfo: user}},
		CurrentContext: cluster,
	})
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pemBlock("EC PRIVATE KEY", der), err
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writeFiles(directory string, files map[string][]byte) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
