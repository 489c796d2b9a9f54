# ruff: noqa: E501  a row is a line
"""Kinds of scipy, scikit-learn and networkx."""

from .kind import Family, Kind as K

#: Without the variable scikit-learn looks for programs of the system, which the executor of the tests has not.
X = "import os, numpy as np\nos.environ['LOKY_MAX_CPU_COUNT'] = '1'\nX = np.arange(24.0).reshape(12, 2) % 7\ny = (X[:, 0] > 3).astype(int)\n"
FIT = "x.fit(X + 1, y); x.extra_ = [1]"

# fmt: off
SCIPY = Family("scipy", (
    *(K(f"sparse array, {name}", f"import numpy as np, scipy.sparse as sp\nx = sp.{name}_array(np.diag([1., 2., 0.]))", "x.data[0] = 9", look="x.toarray().tolist(), x.format, x.data.tolist()", inner="x.data") for name in ("csr", "csc", "coo", "bsr", "dia")),
    K("sparse array, lil", "import scipy.sparse as sp\nx = sp.lil_array((2, 3))", "x[1, 2] = 5", look="x.toarray().tolist(), x.format"),
    K("sparse array, dok", "import scipy.sparse as sp\nx = sp.dok_array((2, 3))", "x[1, 2] = 5", look="x.toarray().tolist(), x.format"),
    K("sparse matrix", "import numpy as np, scipy.sparse as sp\nx = sp.csr_matrix(np.eye(2))", "x.data[:] = 5", look="x.toarray().tolist(), type(x).__name__", inner="x.indices"),
    K("frozen distribution", "import scipy.stats as st\nx = st.norm(1, 2)", "x.tag = 1", look="x.mean(), round(x.cdf(2), 6), hasattr(x, 'tag')"),
    K("distribution", "import scipy.stats as st\nx = st.gamma", look="round(x.pdf(1, 2), 6), x.name"),
    K("gaussian_kde", "import scipy.stats as st\nx = st.gaussian_kde([1., 2., 4.])", "x.set_bandwidth(.5)", look="x.factor, x([2.]).round(6).tolist()", inner="x.dataset"),
    K("interp1d, CubicSpline, make_interp_spline", "import scipy.interpolate as si\nx = [si.interp1d([0, 1, 2], [0, 1, 4]), si.CubicSpline([0, 1, 2], [0, 1, 4]), si.make_interp_spline([0, 1, 2, 3], [0, 1, 4, 9])]", "x[1].c[3, 0] = 5", look="[float(f(1.5)) for f in x], float(x[1](0.5))", inner="x[1].c"),
    K("RegularGridInterpolator", "import numpy as np, scipy.interpolate as si\nx = si.RegularGridInterpolator(([0, 1], [0, 1]), np.eye(2))", "x.method = 'nearest'", look="x([.2, .3]).tolist()", inner="x.values"),
    K("KDTree", "import numpy as np, scipy.spatial as ss\nx = ss.KDTree(np.arange(6.0).reshape(3, 2))", "x.tag = 1", look="x.query([2, 2])[1], x.data.tolist(), hasattr(x, 'tag')", wrong="there seen", known="an attribute added to it is lost"),
    K("Delaunay", "import numpy as np, scipy.spatial as ss\nx = ss.Delaunay(np.array([[0, 0], [1, 0], [0, 1.]]))", look="x.simplices.tolist(), x.find_simplex([.2, .2])"),
    K("Rotation", "from scipy.spatial.transform import Rotation\nx = Rotation.from_euler('z', 90, degrees=True)", look="x.as_matrix().round(6).tolist()"),
    K("OptimizeResult", "import scipy.optimize as so\nx = so.OptimizeResult(x=[1], fun=2)", "x.fun = 3; x.x.append(4)", look="dict(x), x.fun", inner="x.x"),
    K("LinearOperator", "import numpy as np, scipy.sparse.linalg as sl\nx = sl.aslinearoperator(np.eye(2))", "x.A[0, 0] = 5", look="(x @ np.ones(2)).tolist()", inner="x.A"),
    K("factorization splu", "import scipy.sparse as sp, scipy.sparse.linalg as sl\nx = sl.splu(sp.csc_array([[2., 0], [0, 4]]))", look="x.shape", refused="SuperLU"),
    K("signal: lti, windows", "import scipy.signal as sg\nx = sg.lti([1.], [1., 2.])", "x.num = [3.]", look="x.num.tolist(), x.den.tolist()"),
    K("result tuples of tests", "import scipy.stats as st\nx = st.ttest_ind([1., 2, 3], [2., 3, 5])", look="round(x.statistic, 6), type(x).__name__"),
), needs=("scipy",))

LEARN = Family("scikit-learn", (
    *(K(name.split("(")[0], f"{X}from sklearn.{module} import {name.split('(')[0]}\nx = {name}.fit(X, y)", FIT, look=f"x.{look}.round(6).tolist(), hasattr(x, 'extra_'), sorted(map(str, x.get_params()))[:3]") for module, name, look in (
        ("linear_model", "LinearRegression()", "coef_"),
        ("linear_model", "LogisticRegression()", "predict_proba(X)"),
        ("linear_model", "SGDClassifier(random_state=0)", "coef_"),
        ("linear_model", "Lasso()", "coef_"),
        ("svm", "SVC()", "decision_function(X)"),
        ("tree", "DecisionTreeClassifier(random_state=0)", "tree_.threshold"),
        ("ensemble", "RandomForestClassifier(3, random_state=0)", "feature_importances_"),
        ("ensemble", "GradientBoostingClassifier(n_estimators=3, random_state=0)", "feature_importances_"),
        ("ensemble", "IsolationForest(n_estimators=3, random_state=0)", "score_samples(X)"),
        ("neighbors", "KNeighborsClassifier(3)", "predict_proba(X)"),
        ("naive_bayes", "GaussianNB()", "theta_"),
        ("neural_network", "MLPRegressor(hidden_layer_sizes=(3,), max_iter=5000, solver='lbfgs', random_state=0)", "predict(X)"),
        ("gaussian_process", "GaussianProcessRegressor(alpha=1, optimizer=None)", "predict(X)"),
        ("cluster", "KMeans(2, n_init=1, random_state=0)", "cluster_centers_"),
        ("cluster", "DBSCAN(eps=2)", "labels_"),
        ("mixture", "GaussianMixture(2, random_state=0)", "means_"),
        ("decomposition", "PCA(1)", "components_"),
        ("manifold", "Isomap(n_neighbors=6, n_components=1)", "dist_matrix_"),
        ("preprocessing", "StandardScaler()", "transform(X)"),
        ("preprocessing", "PolynomialFeatures()", "transform(X)"),
        ("impute", "KNNImputer()", "transform(X)"),
        ("feature_selection", "SelectKBest(k=1)", "scores_"),
        ("calibration", "CalibratedClassifierCV(cv=2)", "predict_proba(X)"),
    )),
    K("HistGradientBoostingClassifier", f"{X}from sklearn.ensemble import HistGradientBoostingClassifier\nx = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2).fit(X, y)", "x.extra_ = [1]", look="x.predict_proba(X).round(6).tolist(), hasattr(x, 'extra_')"),
    K("Pipeline", f"{X}from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\nfrom sklearn.linear_model import Ridge\nx = make_pipeline(StandardScaler(), Ridge()).fit(X, y)", "x.set_params(ridge__alpha=9).fit(X, y)", look="x.predict(X).round(6).tolist(), list(x.named_steps)", inner="x['ridge']"),
    K("ColumnTransformer with FunctionTransformer", f"{X}from sklearn.compose import ColumnTransformer\nfrom sklearn.preprocessing import FunctionTransformer\nk = 2\nx = ColumnTransformer([('f', FunctionTransformer(lambda v: v * k), [0])], remainder='passthrough').fit(X)", "k = 3; x.extra_ = 1", look="x.transform(X).tolist(), hasattr(x, 'extra_')"),
    K("GridSearchCV", f"{X}from sklearn.model_selection import GridSearchCV\nfrom sklearn.neighbors import KNeighborsClassifier\nx = GridSearchCV(KNeighborsClassifier(), {{'n_neighbors': [1, 3]}}, cv=2).fit(X, y)", "x.best_params_['n_neighbors'] = 99", look="x.best_params_, x.cv_results_['rank_test_score'].tolist()", inner="x.best_estimator_"),
    K("TfidfVectorizer", "from sklearn.feature_extraction.text import TfidfVectorizer\nx = TfidfVectorizer(tokenizer=lambda s: s.split(), token_pattern=None).fit(['a b', 'b c'])", "x.fit(['a b', 'd'])", look="sorted(x.vocabulary_), x.idf_.round(6).tolist()"),
    K("CountVectorizer", "from sklearn.feature_extraction.text import CountVectorizer\nx = CountVectorizer().fit(['aa bb', 'bb cc'])", "x.vocabulary_['dd'] = 3", look="x.transform(['aa dd']).toarray().tolist()", inner="x.vocabulary_"),
    K("OneHotEncoder of strings", "import numpy as np\nfrom sklearn.preprocessing import OneHotEncoder\nx = OneHotEncoder(handle_unknown='ignore').fit(np.array([['a'], ['b']], dtype=object))", "x.categories_[0][0] = 'z'", look="x.transform([['z'], ['b']]).toarray().tolist()", inner="x.categories_"),
    K("estimator of the notebook", f"{X}from sklearn.base import BaseEstimator, ClassifierMixin\nclass C(ClassifierMixin, BaseEstimator):\n  def __init__(self, k=1): self.k = k\n  def fit(s, X, y): s.classes_ = np.unique(y); s.mean_ = X.mean(0); return s\n  def predict(s, X): return (X[:, 0] > s.mean_[0] * s.k).astype(int)\nx = C().fit(X, y)", "x.k = 5", look="x.predict(X).tolist(), x.get_params(), x.score(X, y)", inner="x.mean_"),
    K("tree of a decision tree", f"{X}from sklearn.tree import DecisionTreeClassifier\nx = DecisionTreeClassifier(random_state=0).fit(X, y).tree_", "x.threshold[0] = 5.5", look="x.node_count, x.threshold.tolist(), x.predict(X.astype('f4')).tolist()"),
    K("KDTree, BallTree", f"{X}from sklearn.neighbors import KDTree\nx = KDTree(X)", look="x.query(X[:2], k=1)[0].tolist()"),
    K("splitters and kernels", "from sklearn.model_selection import KFold\nfrom sklearn.gaussian_process.kernels import RBF\nx = [KFold(2), 2 * RBF(3.)]", "x[0].n_splits = 3; x[1].k2.length_scale = 5.", look="x", inner="x[1].k2"),
    K("Bunch", "from sklearn.utils import Bunch\nx = Bunch(a=[1])", "x.b = 2; x.a.append(3)", look="dict(x), x.a", inner="x.a"),
), needs=("sklearn",))

NETWORKX = Family("networkx", (
    K("Graph", "import networkx as nx\nx = nx.path_graph(3)\nx.graph['g'] = [1]", "x.add_edge(0, 2, weight=5); x.graph['g'].append(2)", look="x.edges(data=True), x.graph, x.adj[0]", inner="x.graph"),
    K("Graph whose views were used", "import networkx as nx\nx = nx.path_graph(3)\ne, n = x.edges, x.nodes", "x.add_edge(2, 3)", look="list(x.edges), list(e), list(n), x.edges is e", inner="x.nodes"),
    K("DiGraph", "import networkx as nx\nx = nx.DiGraph([(1, 2), (2, 3)])", "x.remove_edge(1, 2); x.add_node('n', c=1)", look="list(x.edges), x.nodes(data=True), list(x.pred[3])"),
    K("MultiGraph", "import networkx as nx\nx = nx.MultiGraph([(1, 2), (1, 2)])", "x.add_edge(1, 2, key='k')", look="list(x.edges(keys=True))"),
    K("subgraph view", "import networkx as nx\ng = nx.path_graph(4)\nx = g.subgraph([0, 1, 2])", "g.add_edge(0, 2); n = len(x)", look="list(x.edges)"),
    K("frozen graph", "import networkx as nx\nx = nx.freeze(nx.path_graph(2))", "x.graph['k'] = 1", look="nx.is_frozen(x), list(x.edges), x.graph", inner="x.graph"),
), needs=("networkx",))
# fmt: on
