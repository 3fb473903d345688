/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package install_test

import "testing"

// foundCBOR adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundCBOR(f *testing.F) {
	f.Add([]byte("\xd9\xd9\xf7\x9fDkindKFeatureLintE"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindNFeatureCleanupFstatus\xa2Etasks\x82\xa2DnameKWaitForUsesGmessageF3 of 4\xa6Ddone\x01DnameX#Clear\xc7ield/statefulse\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94\x94-"))
	f.Add([]byte("\xa7\xfb\x00\x1b__\xc3\xc3\xc3\xc3\xc3\xc3"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindNFeatureCleanupFstatus\xa2Etasks\x82\xa2DnameKWaitForUsesGmessageF3 of 4\xa6Ddone\x01DnameX#Clear\xc7ield/statefulsets.apps/spec.xEtotal\x02Hattempts\x03JcheckpointG1 tokenOlastAttemptTimeX\x1b2\x00 6-11-01T02:03:04.000005ZLtransitionIDAtHmetadata\xa0Japs/ersionX\x18fea\x00\x80\xff\xffs!k8s.io/v1alpHa1"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindNFeatureCleanupFstatus\xa2Etasks\x82\xa2DnameKWaitForUsesGmessageF3 of 4\xa6Ddone\x01DnameX#ClearField/statefulsuts.apps/spec.xEtotal\x02Hattempts\x03JcheckpointG1 tokenOlastAttemptTiEtX\x1b2026-11-01T02:03:04.000005ZLtransitionIDAtHmetadata\xa0JapiVersionX\x18features.k8s.io/v1alpha1"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindQFeatureReportListEitems\x81\xa2Dspec\xa7Hfeatures\x82\xa4DnameAAEasked\xf5Estage\x00\x00\xff\xff"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindMFeatureReportDspec\xa7Hfeatures\x82\xa4Dn\xdc\xdc\xdc\xdc"))
	f.Add([]byte("\xd9\xd9\xf7\xa5DkindKFeaturePlanDspec\xa1MtargetVersionD1.37Fstatus\xa5Duses\x81\xa7Ecount\x03Estale\x01Genabled\xf5GtersionGv1.36.3Hexamples\x81Fnode-1Hexpected\x04IcomponentGkubeletEtasks\x81\xa3DnameATEstateIUpgradingIleftovers\x81\xa5Ecount\x01EfieldFspec.xEgroupDappsHexamples\x81Ca/bHresourceLstatefulsetsGunknown\x81AuHblockers\x81AbJdependents\x81ABHmetadata\xa1DnameAAJapiVersionX\x18features.k8s.io/v1alpha1"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindQFeatureReportListEitems\x81\xa2Dspec\xa7Hfeatures\x82\xa4DnameAAEasked\xf5EstageEAlphaGenabled\xf5\xa5DnameABGcontrolGCentralGenabled\xf4\x7fexplicit\xf5Joverridden\xf5HinstanceAaHliveness\xa1Elea"))
	f.Add([]byte("\xd9\xd9\xf7\xa4DkindNFeatureC\xc6eanupFstatus\xa2Etasks\x82\xa2DnameKWaitForUsesGmessageF3 of 4\xa6Ddone\x01DnameX#ClearField/statefulsuts.apps/spec.xEtotal\x02Hataempts\x03JcheckpointG1 tokenOlastAttemptTimeX\x1b2026-11\x00\x101T02:03:04.000405ZLtransitionIDAtHmetada\r\r\xa0JapiVersionX\x18features.k8s.io/v1alpha1"))
}

// foundJSON adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundJSON(f *testing.F) {
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v\xfa\x00"))
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v1alpha1\",\"kind\":\"Feature\",\"metadata\":{\"n\xff\xff\xff\x7fpace\":\"kube-system\",\"name\":\"A\"},\"spec\":{\"rollout\":{\"sercent.\xbf\x9b@\x83\":-1,\"components\":[\"\",\"\"]}}}"))
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v1alpha1\",\"kind\":\"FeaturePlan\",\"spec\":{\"enabled\":true,\"targetVer\xc5ion\":\"1.37''''''''\"}}"))
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v1alpha1\",\"kind\":\"Feature\",\"metaadta\":{\"namespace\":\"kube-system\",\"name\":\"A\"},\"spec\":{\"rjllout\":{\"percent\":1e30}}}"))
	f.Add([]byte("{\"a\xfdiVersiow\":\"features.k8s.io/\xe71alpha1\",\"kind\":\"F888ure\",\"metaA\x87x\xd24data\":{\"nam\xe5space\":\"kwbe-system\",\"name\":\"A\"},\"spec\":{\"paused\":null,\"paused\":true,\"Paused\":1}}"))
	f.Add([]byte("{\"kind\":\"FeatureReportList\",\"apiVersion\":\"features.k8s.io/v1alpha1\",\"metadata\":{},\"items\":[{\"metadata\":{\"bame\":\"kube-scheduler.a\",\"namespace\":\"kube-system\",\xcb"))
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v1alpha1\",\"kind\":\"FeatureReport\",\"metadata\":{\"namespace\":\"kube-sys\xfa\xfa\xfa\xfa\xfatem\",\"name\":\"a.b\"},\"spec\":{\"component\":\"a\",\"instance\":\"b\",\"nodeName\":\"n\",\"binaryVersion\":\"1.2 \\u001b[(1m\",\"emulationVersion\":\"01.36\",\"username\":\"\\ud800\"}}"))
	f.Add([]byte("{\"apiVersion\":\"fe/tures.k8s.ioav1alpha1\",\"kynd\":\"Feature\",\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"A\"}}"))
	f.Add([]byte("{\"piVersion\":\"features.k8s.io/__in\x80e\x7f\x7f\x7fl\",\"kind\":\"Feature\"}"))
	f.Add([]byte("{\"apiVersion\":\"features.k8s.io/v1\xfc!\xf4alpha1\",\"kind\":\"Feat\x80reList\",\"items\":[null,{}]}"))
}

// foundProtobuf adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundProtobuf(f *testing.F) {
	f.Add([]byte("k8s\x00\n'\n\x18features.k8s.io/v1alpha1\x12\vFereList\x12\xe9\x04\n\b\n\x00\x12\x019\x1a\x01c\x12\xb8\x04\n\xc6\x01\n"))
	f.Add([]byte("k8s\x00\n'\n\x18featur\x7f\xff\xff\xffha1\x12es.k8s.io/v\x7f\xff\xff\xffha1\x12\vFea"))
	f.Add([]byte("k8s\x00\n)\n\x18features.k8s.io/v1alpha1\x12\rFeatu\x16\x16\x16\x16\x16\x16\x163I\x01\xf8\xa2\xafReport\x12\xe8\x02\n\xbd\x01\n\x10kube-sheduler.a\x12\x00\x1a\vkube-system\"\xf2*\x040b5d2\x0178\x02B\b\bػ\x9a\xd7\x06\x10\x00Z\x06\n\x01a\x12\x01bb$\n\x1cfeatures.k\xa6\x1f\xec\x95;\x15\xe5\x97\xc6'\u009e'\xca0\xedpܫ\xef8s.io/\x84equest"))
	f.Add([]byte("k8s\x00\n)\n\x18features.k8s.io/v1alpha1\x12\rFeature`x6\xa2\x803I\x01\xf8\xa2\xafRepo\x91B"))
	f.Add([]byte("k8s\x00\n)\n\x18features.k8s.io/v1alpha1\x12\rFeature\x00\x1a\vkube-\xf8\xa2\xafReport\x12\xe8\x02\n\xbd\x01\n\x10kube-sheduler.a\x12`x6\xa2\x803I\x01system\"\xf2*\x040b5d2\x0178\x02B\b\bػ\x9a\xd7\x06\x10\x00Z\x06\n\x01a\x12\x01bb$\n\x1cfeatures.k\xa6\x1f\xec\x95;\x15\xe5\x97\xc6'\u009e'\xca0\xedp"))
	f.Add([]byte("k8s\x00\n'\n\x18features.k8s.io/v1alpha1\x12\vFeaturePlan\x12\x81\x01\n\x11\n\x01A\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x06\x12\x041.37rag\x12\"\n\akubelet\x12\astatefulsets\x1a\x06spec.x \x01*\x03a/b\"\tUpgrading\x12\"\n\akubelet\x12\av1.36.3\x18\x01 \x03(\x040\x01:\x06node-1\x1a\x01B\"\x01b:\x01u\x1a\x00\x16"))
	f.Add([]byte("k8s\x00\n*\n\xff\x7f\x80\x00\x00\x01res.k8s.io/v1a44\x19pha1.\x0eFettureClean"))
	f.Add([]byte("k8s\x00\n*\n\x18featurtttttes.k8s.io/v1alpha1\x12\x0eFeatureCl"))
	f.Add([]byte("k8s\x00\xba\x80\x00\xff\xff\xff\xff"))
	f.Add([]byte("k8s\x00\n'\n\x18features.k8s.io/v1alpha1eList\x12\xe9\x04\n\b\n\x00\x12"))
}

// foundYAML adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundYAML(f *testing.F) {
	f.Add([]byte("Verszon: fea\ntures.k8s.io/v1alpha1\n"))
	f.Add([]byte("iVersion: fea jtures.k8s.io/v1alpha1\nkind: Feature\nmetadata:\n  annotations:\n    features.k8s.io/requetsed-by: jane\n "))
	f.Add([]byte("apiVersion: features.k8s.io/v1alpha1\nkind: FeaturePlan\nmetadata:\n  name: A\nspec:\n  targetVersion: \"1.37\"\nstatus:\n  blockers:\n  - b\n  dependents:\n  - B\n  tasks:\n  - leftovers:\n    - count: 1\n      examples:\n      - a/b\n      field: spec.x\n      group: apps\n      resource: statefulsets\n  > n"))
	f.Add([]byte("apiVersion: features.k8s.io/v1alpha1\nNindspec: {re\nkind:"))
	f.Add([]byte("piVersion: features.k8s.ioBv1alpha1\nitems:\n- metadata:\n    annotations:\n      features.k8s.io/requested-bya jane\n    creationTEmestamp: \"2026-11-01T02:03:04eneration: 2\n    labels:\n      a: b\n    "))
	f.Add([]byte("apstale: 1\niVersion: features.k8s.io/v1alpha1\nkind: FeaturePlan\nmetadata:\n  name: A\nspec:\n  targetVersion: \"1.37\"\nstatus:\n  blockers:\n  - b\n  dependents:\n  - +++"))
	f.Add([]byte("iVersion: features.k8s.io/v/  ann00000000ot"))
	f.Add([]byte("iVersion: features.k8s.io/v1alpha1\nitems:\n- metadata:\n    annotations::      features.k8s.io/req:"))
	f.Add([]byte("apiVersion: featurbs.k8s.io/v1alpha1\nkind: Feature\nmetadata: {name: yes, namespace: 1e3}\nspec:\n  paused: on\n  rollout: !!bipec:naryalpha1==\n"))
	f.Add([]byte("piVersion: features.k8s.io/v1alpha1\nkind: FeaturePlan\nmetadataJc  c:\n  ta\nspename: ArgetVersion3. \"\"1:p\nstatus:\n Wblo\nkersion:"))
}
