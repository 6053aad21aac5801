package web

import (
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"

	"weir/models"
)

// SecondFactor is the second factor of the reader's own account.
type SecondFactor struct {
	EnabledAt     *time.Time // nil: there is none
	RecoveryCodes int64      // unused
	Required      bool
	Available     bool // the account has a password
}

// ProofView is a form that proves that it is the account's person who sends it.
type ProofView struct {
	Form         Form // password, code
	SecondFactor SecondFactor
}

// CodeStepView is the step of signing in with a code.
type CodeStepView struct {
	Form     Form // code
	Recovery bool // with a recovery code
	Passkey  PasskeyButton
}

func (v CodeStepView) action() string {
	if v.Recovery {
		return "/signin/second-factor?with=recovery-code"
	}
	return "/signin/second-factor"
}

// EnrollmentView shows a new authenticator app, until a code of it is sent to Action.
type EnrollmentView struct {
	Form      Form // code
	QR        QR
	Secret    string // in base 32
	ExpiresAt time.Time
	Action    string
	Back      string
}

// RecoveryCodesView shows recovery codes, once.
type RecoveryCodesView struct {
	Codes []string
	Next  string // the page to go on to
}

// SignInPolicyView is the form of the sign-in policy.
type SignInPolicyView struct{ Form Form } // second_factor, version

// QR is a QR code: the path of its dark modules in an SVG of Size × Size, with the margin.
type QR struct {
	Path string
	Size int
}

// qrMargin is the width of the light margin in modules, which readers need (ISO/IEC 18004).
const qrMargin = 4

// QRCode renders a text of up to about 2000 characters as a QR code. A longer one is an error.
func QRCode(text string) (QR, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return QR{}, err
	}
	size := code.Bounds().Dx()
	var b strings.Builder
	for y := range size {
		for x := range size {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				b.WriteString("M" + number(int64(x+qrMargin)) + " " + number(int64(y+qrMargin)) + "h1v1h-1z")
			}
		}
	}
	return QR{b.String(), size + 2*qrMargin}, nil
}

func (q QR) viewBox() string {
	size := number(int64(q.Size))
	return "0 0 " + size + " " + size
}

// groupsOf4 separates a secret into groups that people can type.
func groupsOf4(s string) string {
	var groups []string
	for len(s) > 4 {
		groups, s = append(groups, s[:4]), s[4:]
	}
	return strings.Join(append(groups, s), " ")
}

// ConfirmResetSecondFactor asks for confirmation before the second factor of a person is
// removed.
func ConfirmResetSecondFactor(u models.User) ConfirmView {
	return ConfirmView{
		Title: models.Say("Reset the second factor of %s?", u.Email),
		Consequences: []models.Text{
			models.Say("This removes all passkeys of the account, too."),
			models.Say("The person then signs in with the password alone, or sets up a new second factor if the policy requires one."),
			models.Say("This signs the person out of all sessions.")},
		Button: models.Say("Reset second factor"),
		Action: personPath(u.ID) + "/second-factor/reset",
		Back:   personPath(u.ID),
	}
}
