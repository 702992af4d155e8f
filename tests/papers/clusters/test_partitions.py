"""Partitions that the files of a site name."""

from gpuschedlab import Fifo
from gpuschedlab.papers.clusters.recipe import Site


def test_a_site_has_the_partitions_that_its_files_name(tmp_path):
    (tmp_path / "jobs.csv").write_text("job_id,submit,gpus,duration,vc\na,0,8,10,main\nb,1,8,10,debug\nc,2,8,10,main\n")
    site = tmp_path / "site.toml"
    text = '[log]\npath = "jobs.csv"\n[cluster]\nnodes = "3x8:v100"\n[partitions.main]\n'
    site.write_text(text + 'nodes = "n[0-1]"\n[partitions.debug]\nnodes = "n2"\n')
    scenario = Site(str(site))()
    assert str(scenario.cluster) == "2x8:v100@main,1x8:v100@debug"
    assert scenario.run(Fifo()).jobs["gpu_type"].to_list() == ["v100@main", "v100@debug", "v100@main"]
    site.write_text(text + '[partitions.debug]\nnodes = "ALL"\n')
    assert str(Site(str(site))().cluster) == "3x8:v100"
